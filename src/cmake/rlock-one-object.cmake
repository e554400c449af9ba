# Sets static_objects: what the static library consists of. An archive cannot hide
# what its members share, some 700 names that begin with rl_, as those of GNU
# readline do. So the objects are linked into one first, in which what is hidden is
# made local. Not where the tools for that are missing, on macOS, nor for a build
# whose objects a sanitizer or a counter has put tables into.
set(static_objects $<TARGET_OBJECTS:rlock_objects>)
if(NOT CMAKE_OBJCOPY OR APPLE OR WIN32 OR RLOCK_SANITIZE OR RLOCK_COVERAGE OR
        RLOCK_BUILD_FUZZERS)
    return()
endif()

set(one_object ${generated}/rlock.o)
separate_arguments(flags NATIVE_COMMAND "${CMAKE_C_FLAGS}")
add_custom_command(
    OUTPUT ${one_object}
    COMMAND ${CMAKE_C_COMPILER} ${flags} -r -nostdlib -o ${one_object}
        $<TARGET_OBJECTS:rlock_objects>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${one_object}
    DEPENDS $<TARGET_OBJECTS:rlock_objects>
    COMMAND_EXPAND_LISTS
    COMMENT "Linking the objects into one"
    VERBATIM)
set_source_files_properties(${one_object} PROPERTIES
    EXTERNAL_OBJECT TRUE GENERATED TRUE)
set(static_objects ${one_object})
