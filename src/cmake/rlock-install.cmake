# What `cmake --install` puts where, the targets uninstall and package.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rlock)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Documents lie to each other as in the source, so that their links lead somewhere.
install(FILES LICENSE README.md README.zh-CN.md CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY src/doc DESTINATION ${CMAKE_INSTALL_DOCDIR}/src
    PATTERN "*.sh" EXCLUDE PATTERN "*.1" EXCLUDE)
install(FILES src/threads.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/src)
foreach(folder src lua tests)
    install(FILES ${folder}/README.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
include(src/cmake/rlock-manuals.cmake)
# For clients in other languages: the scripts as they are sent.
install(DIRECTORY ${generated}/lua DESTINATION ${CMAKE_INSTALL_DATADIR}/rlock)

# Two sets: the static library's needs what a user of the shared one may lack.
foreach(kind shared static)
    set(target rlock)
    if(kind STREQUAL "static")
        set(target rlock_static)
    endif()
    if(TARGET ${target})
        install(TARGETS ${target} EXPORT rlock-${kind})
        install(EXPORT rlock-${kind}
            NAMESPACE rlock:: DESTINATION ${package_dir})
    endif()
endforeach()
if(TARGET rlock_command)
    install(TARGETS rlock_command DESTINATION ${CMAKE_INSTALL_BINDIR})
    # Where shells look for what others have installed.
    set(completion src/cli/completion)
    install(FILES ${completion}/rlock.bash RENAME rlock
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${completion}/_rlock
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${completion}/rlock.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
write_basic_package_version_file(
    ${CMAKE_CURRENT_BINARY_DIR}/rlock-config-version.cmake
    VERSION ${PROJECT_VERSION}
    COMPATIBILITY SameMinorVersion)
# What the static library needs besides.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/rlock-features.cmake
    "set(RLOCK_HAS_TLS \"${RL_HAS_OPENSSL}\")\n")
install(FILES
    src/cmake/rlock-config.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/rlock-features.cmake
    src/cmake/rlock-deps.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/rlock-config-version.cmake
    DESTINATION ${package_dir})

# --- pkg-config -------------------------------------------------------------

# The prefix is found from where rlock.pc lies, so that it holds for
# `cmake --install --prefix` and for a moved tree as well. Nix and Guix give
# each folder as an absolute path.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
    set(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
    file(RELATIVE_PATH pc_prefix
        ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
    string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_prefix}")
    set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
if(NOT IS_ABSOLUTE "${pc_includedir}")
    set(pc_includedir "\${prefix}/${pc_includedir}")
endif()

# No Requires, not even a private one: pkg-config would ask for hiredis.pc and
# uuid.pc, and take over their -I, also for a program that links librlock.so
# and needs neither.
set(pc_libs_private "")
foreach(dep hiredis uuid)
    get_filename_component(dir "${RLOCK_${dep}_LIBRARY}" DIRECTORY)
    if(dir AND NOT dir IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        string(APPEND pc_libs_private " -L${dir}")
    endif()
    string(APPEND pc_libs_private " -l${dep}")
endforeach()
if(RL_HAS_OPENSSL)
    get_filename_component(dir "${OPENSSL_SSL_LIBRARY}" DIRECTORY)
    if(dir AND NOT dir IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        string(APPEND pc_libs_private " -L${dir}")
    endif()
    string(APPEND pc_libs_private " -lssl -lcrypto")
endif()
if(RLOCK_ATOMIC_LIBRARY)
    string(APPEND pc_libs_private " -l${RLOCK_ATOMIC_LIBRARY}")
endif()
string(APPEND pc_libs_private " -pthread")
set(pc_libs "")
if(NOT TARGET rlock)
    set(pc_libs "${pc_libs_private}")
    set(pc_libs_private "")
endif()
configure_file(src/cmake/rlock.pc.in rlock.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rlock.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# --- Afterwards -------------------------------------------------------------

if(TARGET rlock AND NOT CMAKE_CROSSCOMPILING)
    install(CODE "set(libdir \"${CMAKE_INSTALL_LIBDIR}\")")
    install(SCRIPT src/cmake/ldconfig.cmake)
endif()

# These names are everybody's: a parent project may have its own.
if(top_level)
    add_custom_target(uninstall
        COMMAND ${CMAKE_COMMAND}
            -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
            -P ${PROJECT_SOURCE_DIR}/src/cmake/uninstall.cmake
        COMMENT "Removing what the last installation has put there"
        VERBATIM)

    set(CPACK_GENERATOR TGZ)
    set(CPACK_SOURCE_GENERATOR TGZ)
    set(CPACK_PACKAGE_VENDOR rlock)
    set(CPACK_PACKAGE_FILE_NAME
        "rlock-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
    set(CPACK_SOURCE_PACKAGE_FILE_NAME "rlock-${PROJECT_VERSION}")
    set(CPACK_SOURCE_IGNORE_FILES "/\\.git(/|$)"
        "^${PROJECT_SOURCE_DIR}/build(-[^/]*)?/"
        "^${PROJECT_SOURCE_DIR}/\\.ci/out/" "^${PROJECT_BINARY_DIR}/")
    set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
    set(CPACK_RESOURCE_FILE_README ${PROJECT_SOURCE_DIR}/README.md)
    set(CPACK_VERBATIM_VARIABLES ON)
    include(CPack)
endif()
