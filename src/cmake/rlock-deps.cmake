# Finds hiredis and libuuid and calls them rlock::hiredis and rlock::uuid: a
# target that the project has already, or what lies in the system, with
# pkg-config's help where there is any. The build uses it, and so does the
# installed package, for programs that link the static library. Both are
# global: a parent project links what the static library needs.

# Without being told so, pkg-config speaks of the machine that it runs on.
if(NOT CMAKE_CROSSCOMPILING OR DEFINED ENV{PKG_CONFIG_LIBDIR} OR
        DEFINED ENV{PKG_CONFIG_SYSROOT_DIR} OR DEFINED PKG_CONFIG_EXECUTABLE)
    find_package(PkgConfig QUIET)
endif()

# The folders in which a target's headers lie in this build.
function(rlock_target_includes result target)
    get_target_property(found ${target} INTERFACE_INCLUDE_DIRECTORIES)
    set(dirs "")
    if(found)
        foreach(dir IN LISTS found)
            string(REGEX REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1" dir
                "${dir}")
            if(NOT dir MATCHES "\\$<")
                list(APPEND dirs "${dir}")
            endif()
        endforeach()
    endif()
    set(${result} "${dirs}" PARENT_SCOPE)
endfunction()

# Headers are included as <hiredis/hiredis.h>; in hiredis' own source tree they
# lie in no folder of that name.
function(rlock_headers_folder result folder header includes)
    set(all "${includes}")
    find_path(at ${folder}/${header} PATHS ${includes} NO_CACHE
        NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
    if(NOT at)
        find_path(flat ${header} PATHS ${includes} NO_CACHE
            NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
        if(flat)
            set(forward ${CMAKE_CURRENT_BINARY_DIR}/rlock-forward)
            file(MAKE_DIRECTORY ${forward})
            file(CREATE_LINK ${flat} ${forward}/${folder} SYMBOLIC)
            list(APPEND all ${forward})
        endif()
    endif()
    set(${result} "${all}" PARENT_SCOPE)
endfunction()

function(rlock_use_target name header target)
    rlock_target_includes(includes ${target})
    rlock_headers_folder(includes ${name} ${header} "${includes}")
    add_library(rlock::${name} INTERFACE IMPORTED GLOBAL)
    set_target_properties(rlock::${name} PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${includes}"
        INTERFACE_LINK_LIBRARIES ${target})
    set(RLOCK_${name}_INCLUDES "${includes}" PARENT_SCOPE)
endfunction()

function(rlock_use_system name header)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(RLOCK_PC_${name} QUIET ${name})
    endif()
    # Our header names start with a folder; a .pc file may point into it.
    set(includes ${RLOCK_PC_${name}_INCLUDE_DIRS})
    foreach(dir IN LISTS RLOCK_PC_${name}_INCLUDE_DIRS)
        get_filename_component(parent ${dir} DIRECTORY)
        list(APPEND includes ${parent})
    endforeach()
    find_path(RLOCK_${name}_INCLUDE_DIR ${name}/${header} HINTS ${includes})
    find_library(RLOCK_${name}_LIBRARY ${name}
        HINTS ${RLOCK_PC_${name}_LIBRARY_DIRS})
    mark_as_advanced(RLOCK_${name}_INCLUDE_DIR RLOCK_${name}_LIBRARY)
    if(RLOCK_${name}_INCLUDE_DIR AND RLOCK_${name}_LIBRARY)
        add_library(rlock::${name} UNKNOWN IMPORTED GLOBAL)
        set_target_properties(rlock::${name} PROPERTIES
            IMPORTED_LOCATION "${RLOCK_${name}_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${RLOCK_${name}_INCLUDE_DIR}")
        set(RLOCK_${name}_INCLUDES "${RLOCK_${name}_INCLUDE_DIR}" PARENT_SCOPE)
    endif()
endfunction()

# rlock_find_dep(NAME HEADER TARGET...): the first of the targets that exists
# is taken, for no program can do with two hiredis.
macro(rlock_find_dep name header)
    foreach(target ${ARGN})
        if(TARGET ${target} AND NOT TARGET rlock::${name})
            rlock_use_target(${name} ${header} ${target})
        endif()
    endforeach()
    if(NOT TARGET rlock::${name})
        rlock_use_system(${name} ${header})
    endif()
endmacro()

rlock_find_dep(hiredis hiredis.h hiredis::hiredis hiredis::hiredis_static)
rlock_find_dep(uuid uuid.h)
