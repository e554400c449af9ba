# rlock for vcpkg, as an overlay port:
#
#     RLOCK_TARBALL=/where/rlock-0.3.0.tar.gz \
#         vcpkg install rlock --overlay-ports=src/packaging/vcpkg
#
# The tarball is a release's (src/packaging/release.sh). With vcpkg itself this port
# has not been tried; that it names the version and options that there are, is looked
# at by tests/packaging.sh.
if(NOT DEFINED ENV{RLOCK_TARBALL})
    message(FATAL_ERROR "RLOCK_TARBALL has to name the tarball of a release")
endif()
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "$ENV{RLOCK_TARBALL}")

set(tls OFF)
if("tls" IN_LIST FEATURES)
    set(tls ON)
endif()
set(command OFF)
if("tools" IN_LIST FEATURES)
    set(command ON)
endif()
vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DRLOCK_INSTALL=ON
        -DRLOCK_TLS=${tls}
        -DRLOCK_BUILD_COMMAND=${command})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/rlock)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
    vcpkg_copy_tools(TOOL_NAMES rlock AUTO_CLEAN)
endif()

file(REMOVE_RECURSE
    "${CURRENT_PACKAGES_DIR}/debug/include"
    "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
