# The target amalgamation: the library as one file, for programs that are built
# by something else than CMake. See src/doc/building.md.
if(NOT top_level)
    return()
endif()
find_program(RLOCK_AWK NAMES awk mawk gawk)
mark_as_advanced(RLOCK_AWK)
if(NOT RLOCK_AWK)
    return()
endif()

set(folder ${PROJECT_BINARY_DIR}/amalgamation)
get_target_property(all_sources rlock_objects SOURCES)
list(FILTER all_sources INCLUDE REGEX "\\.c$")
file(GLOB_RECURSE internal_headers CONFIGURE_DEPENDS src/*.h)
list(FILTER internal_headers EXCLUDE REGEX "/src/cli/")
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS
    include/*.h include/*.hpp)
add_custom_command(
    OUTPUT ${folder}/rlock.c
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${CMAKE_COMMAND} -E copy_directory
        ${PROJECT_SOURCE_DIR}/include ${folder}
    COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${RLOCK_AWK}
        -v version=${PROJECT_VERSION}
        -v output=${folder}/rlock.c
        -v tls=$<BOOL:${RL_HAS_OPENSSL}>
        -v atomic=$<BOOL:${RLOCK_ATOMIC_LIBRARY}>
        -v path=${PROJECT_SOURCE_DIR}/src:${generated}
        -f ${PROJECT_SOURCE_DIR}/src/cmake/amalgamate.awk
        ${PROJECT_SOURCE_DIR}/LICENSE ${all_sources}
    DEPENDS ${all_sources} ${internal_headers} ${public_headers}
        ${generated}/rlock_config.h LICENSE src/cmake/amalgamate.awk
    COMMENT "Writing amalgamation/rlock.c"
    VERBATIM)
add_custom_target(amalgamation DEPENDS ${folder}/rlock.c)
