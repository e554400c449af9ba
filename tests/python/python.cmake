# The tests of src/python: each file by python3 with its warnings as errors,
# and with the shared library of this build. Where that cannot be, they are
# skipped, and say so.
find_program(RLOCK_PYTHON3 python3)
mark_as_advanced(RLOCK_PYTHON3)

set(python_reason)
if(CMAKE_CROSSCOMPILING)
    set(python_reason "not in a cross build")
elseif(RLOCK_SANITIZE)
    set(python_reason "not with a sanitizer, which has to be in the program")
elseif(NOT TARGET rlock)
    set(python_reason "no shared library in this build")
elseif(NOT RLOCK_PYTHON3)
    set(python_reason "no python3 here")
else()
    execute_process(
        COMMAND ${RLOCK_PYTHON3} -c
            "import sys, ctypes; sys.exit(sys.version_info < (3, 9))"
        RESULT_VARIABLE python_status OUTPUT_QUIET ERROR_QUIET)
    if(NOT python_status EQUAL 0)
        set(python_reason "this python3 is older than 3.9, or lacks ctypes")
    endif()
endif()

# The library as it would be had it got nothing new since the last version: of what
# programs can call there is what abi/ has of that, and how a client is closed now.
if(NOT python_reason)
    file(GLOB abi_dumps install/abi/*.abi)
    list(SORT abi_dumps COMPARE NATURAL)
    list(GET abi_dumps -1 abi_dump)
    file(STRINGS ${abi_dump} old_symbols REGEX "<elf-symbol name='rlock_")
    string(REGEX REPLACE "[^;]*name='(rlock_[a-z_]+)'[^;]*" "\\1"
        old_symbols "${old_symbols}")
    string(REPLACE ";" ";\n        " old_symbols "${old_symbols}")
    set(old_map ${CMAKE_CURRENT_BINARY_DIR}/python/older.map)
    file(WRITE ${old_map} "RLOCK_${abi} {
    global:
        rlock_client_close;
        ${old_symbols};
    local:
        *;
};
")
    add_library(rlock_older SHARED $<TARGET_OBJECTS:rlock_objects>)
    target_link_libraries(rlock_older PRIVATE rlock::hiredis rlock::uuid
        ${RLOCK_TLS_LIBRARIES} ${RLOCK_ATOMIC_LIBRARY} Threads::Threads)
    target_link_options(rlock_older PRIVATE
        -Wl,--version-script=${old_map} -Wl,-z,nodelete)
    set_target_properties(rlock_older PROPERTIES
        LINKER_LANGUAGE C
        LINK_DEPENDS ${old_map}
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/python)
endif()

# rlock_python_test(NAME COMMAND...)
function(rlock_python_test name)
    if(python_reason)
        rlock_add_test(${name} status
            sh -c "echo '${python_reason}' && exit 77")
    else()
        rlock_add_test(${name} status ${CMAKE_COMMAND} -E env
            RLOCK_LIBRARY=$<TARGET_FILE:rlock> PYTHONDONTWRITEBYTECODE=1
            PYTHONPATH=${PROJECT_SOURCE_DIR}/src/python
            RLOCK_INCLUDE=${PROJECT_SOURCE_DIR}/include
            RLOCK_OLDER=$<TARGET_FILE:rlock_older>
            RLOCK_CC=${CMAKE_C_COMPILER} ${ARGN})
    endif()
endfunction()

file(GLOB python_tests CONFIGURE_DEPENDS python/test_*.py)
foreach(source IN LISTS python_tests)
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE test_ "" name ${name})
    rlock_python_test(python.${name}
        ${RLOCK_PYTHON3} -X dev -W error ${source})
endforeach()
rlock_python_test(example.python_tasks
    ${CMAKE_CURRENT_SOURCE_DIR}/with-redis.sh
    ${RLOCK_PYTHON3} -X dev -W error
    ${PROJECT_SOURCE_DIR}/examples/python_tasks.py)
