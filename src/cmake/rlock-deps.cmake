# Finds hiredis and libuuid, with pkg-config's help where there is any, and
# calls them rlock::hiredis and rlock::uuid. The build uses it, and so does the
# installed package, for programs that link the static library.
find_package(PkgConfig QUIET)

function(rlock_find_dep name header)
    if(TARGET rlock::${name})
        return()
    endif()
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(RLOCK_PC_${name} QUIET ${name})
    endif()
    # Our header names start with a folder; a .pc file may point into it.
    set(includes ${RLOCK_PC_${name}_INCLUDE_DIRS})
    foreach(dir IN LISTS RLOCK_PC_${name}_INCLUDE_DIRS)
        get_filename_component(parent ${dir} DIRECTORY)
        list(APPEND includes ${parent})
    endforeach()
    find_path(RLOCK_${name}_INCLUDE_DIR ${header} HINTS ${includes})
    find_library(RLOCK_${name}_LIBRARY ${name}
        HINTS ${RLOCK_PC_${name}_LIBRARY_DIRS})
    mark_as_advanced(RLOCK_${name}_INCLUDE_DIR RLOCK_${name}_LIBRARY)
    if(RLOCK_${name}_INCLUDE_DIR AND RLOCK_${name}_LIBRARY)
        add_library(rlock::${name} UNKNOWN IMPORTED)
        set_target_properties(rlock::${name} PROPERTIES
            IMPORTED_LOCATION "${RLOCK_${name}_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${RLOCK_${name}_INCLUDE_DIR}")
    endif()
endfunction()

rlock_find_dep(hiredis hiredis/hiredis.h)
rlock_find_dep(uuid uuid/uuid.h)
