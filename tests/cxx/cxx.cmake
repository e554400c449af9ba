# The programs that test rlock.hpp: each by every C++ compiler that is here, with
# its standard libraries, as C++17 and C++20, and without exceptions. What is not
# here is a test that is skipped, and says so. With a sanitizer, or with counters,
# there is only the compiler of the C compiler's make, and each library has one
# standard: these take longer to compile than all tests in C.
#
#     cxx.g++-20          guards, shared, errors, owners and coroutines
#     cxx.g++-20-quiet    quiet.cpp, compiled with -fno-exceptions

# Their servers, and the runner of their own that unit tests have.
add_library(rlock_cxx_support STATIC
    support/asker.c support/events.c support/plain.c support/script_text.c
    support/server.c support/server_process.c support/test.c)
target_compile_definitions(rlock_cxx_support PRIVATE
    RLOCK_TEST_PLAIN RLOCK_PRELOAD_CLOCK="$<TARGET_FILE:preload_clock>")
target_link_libraries(rlock_cxx_support PRIVATE test_base)
add_dependencies(rlock_cxx_support preload_clock)

file(GLOB cxx_headers CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/include/rlock/*
    cxx/*.hpp support/test.h support/server.h)
# The system's own folder must not come before the library's of C++.
set(cxx_hiredis)
if(NOT RLOCK_hiredis_INCLUDE_DIR IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
    set(cxx_hiredis -isystem ${RLOCK_hiredis_INCLUDE_DIR})
endif()

set(cxx_libraries ${RLOCK_hiredis_LIBRARY} ${RLOCK_uuid_LIBRARY})
foreach(library IN LISTS RLOCK_TLS_LIBRARIES RLOCK_ATOMIC_LIBRARY)
    if(TARGET ${library})
        list(APPEND cxx_libraries $<TARGET_FILE:${library}>)
    else()
        list(APPEND cxx_libraries -l${library})
    endif()
endforeach()
# What sanitizers, and counters in the library, need.
get_directory_property(cxx_link LINK_OPTIONS)

# rlock_cxx_program(NAME COMPILER OPTIONS SOURCE...): a compiler that is not
# CMake's is called by hand, so all of them are.
function(rlock_cxx_program name compiler options)
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/cxx)
    set(program ${folder}/${name})
    set(objects)
    foreach(source IN LISTS ARGN)
        set(object ${folder}/${name}.${source}.o)
        list(APPEND objects ${object})
        add_custom_command(OUTPUT ${object}
            COMMAND ${compiler} ${options} -g -O1
                -Wall -Wextra -Wpedantic -Werror ${sanitize} -pthread
                -DRLOCK_TEST_PLAIN -I${PROJECT_SOURCE_DIR}/include
                -I${CMAKE_CURRENT_SOURCE_DIR}/support ${cxx_hiredis}
                -c ${CMAKE_CURRENT_SOURCE_DIR}/cxx/${source} -o ${object}
            DEPENDS cxx/${source} ${cxx_headers}
            COMMENT "Building cxx/${name}: ${source}"
            VERBATIM)
    endforeach()
    add_custom_command(OUTPUT ${program}
        COMMAND ${compiler} ${options} ${cxx_link} -pthread ${objects}
            -o ${program} $<TARGET_FILE:rlock_cxx_support>
            $<TARGET_FILE:rlock_inside> ${cxx_libraries}
        DEPENDS ${objects} rlock_cxx_support rlock_inside
        COMMENT "Linking cxx/${name}"
        VERBATIM)
    add_custom_target(test_cxx_${name} ALL DEPENDS ${program})
    rlock_add_test(cxx.${name} tap ${program})
endfunction()

# Whether it makes programs with these options; and what it says if it does not.
function(rlock_cxx_works result compiler)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/cxx/works.cpp)
    file(WRITE ${source} "#include <string>
        int main(int n, char **v) { return std::string(v[0], 1).size() > 1; }")
    execute_process(
        COMMAND ${compiler} ${ARGN} ${source} -o ${source}.out
        RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    set(${result} OFF PARENT_SCOPE)
    if(status EQUAL 0)
        set(${result} ON PARENT_SCOPE)
    endif()
endfunction()

function(rlock_cxx_skip name why)
    message(STATUS "Without the tests cxx.${name}: ${why}")
    rlock_add_test(cxx.${name} status sh -c "echo '${why}' && exit 77")
endfunction()

# rlock_cxx_tests(NAME STANDARD COMPILER OPTION...): by one compiler with one
# library; with a sanitizer, only as that standard.
function(rlock_cxx_tests name standards compiler)
    set(all guards.cpp shared.cpp errors.cpp owners.cpp)
    if(NOT RLOCK_SANITIZE AND NOT RLOCK_COVERAGE)
        set(standards 17 20)
    endif()
    foreach(standard IN LISTS standards)
        set(options ${ARGN} -std=c++${standard})
        rlock_cxx_works(works ${compiler} ${options})
        if(NOT works)
            string(JOIN " " spelled ${options}) # a list would end the sentence
            rlock_cxx_skip(${name}-${standard}
                "${compiler} makes no program with ${spelled}")
            continue()
        endif()
        if(standard EQUAL 20)
            list(APPEND all coroutines.cpp)
        endif()
        rlock_cxx_program(${name}-${standard} ${compiler} "${options}" ${all})
        rlock_cxx_program(${name}-${standard}-quiet ${compiler}
            "${options};-fno-exceptions" quiet.cpp)
    endforeach()
endfunction()

# rlock_cxx_make(NAME CNAME ID): a C++ compiler, and its C compiler, as CMake calls
# its make. If that is ours and has a version in its name, then so has this.
function(rlock_cxx_make name cname id)
    get_filename_component(own ${CMAKE_C_COMPILER} NAME)
    set(wanted ${name})
    if(own MATCHES "^${cname}(-[0-9.]+)$")
        set(wanted ${name}${CMAKE_MATCH_1})
    endif()
    find_program(RLOCK_${id}_CXX NAMES ${wanted} ${name})
    mark_as_advanced(RLOCK_${id}_CXX)
    if(CMAKE_CROSSCOMPILING)
        rlock_cxx_skip(${name} "not in a cross build")
    elseif(NOT RLOCK_${id}_CXX)
        rlock_cxx_skip(${name} "no ${name} here")
    elseif((RLOCK_SANITIZE OR RLOCK_COVERAGE) AND
            NOT CMAKE_C_COMPILER_ID STREQUAL id)
        rlock_cxx_skip(${name} "it cannot link what the C compiler adds")
    else()
        rlock_cxx_tests(${name} 20 ${RLOCK_${id}_CXX})
        if(id STREQUAL Clang)
            rlock_cxx_tests(${name}-libc++ 17 ${RLOCK_${id}_CXX} -stdlib=libc++)
        endif()
    endif()
endfunction()

rlock_cxx_make(g++ gcc GNU)
rlock_cxx_make(clang++ clang Clang)
