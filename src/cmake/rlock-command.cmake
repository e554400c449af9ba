# The program rlock, of src/cli/. It links the shared library, where there is one.
file(GLOB command_sources CONFIGURE_DEPENDS src/cli/*.c)
add_executable(rlock_command ${command_sources})
target_compile_definitions(rlock_command PRIVATE _GNU_SOURCE)
target_link_libraries(rlock_command PRIVATE rlock::rlock ${RLOCK_ATOMIC_LIBRARY})

# `rlock top` has a screen where there is ncurses; else it prints its rounds.
set(CURSES_NEED_NCURSES TRUE)
find_package(Curses QUIET)
if(CURSES_FOUND)
    target_compile_definitions(rlock_command PRIVATE RLOCK_CURSES)
    target_include_directories(rlock_command SYSTEM PRIVATE
        ${CURSES_INCLUDE_DIRS})
    target_link_libraries(rlock_command PRIVATE ${CURSES_LIBRARIES})
endif()

# `rlock exporter` serves by HTTP where there is libmicrohttpd, which it loads when
# that is asked for; else it writes files.
find_library(RLOCK_MICROHTTPD_LIBRARY microhttpd)
find_path(RLOCK_MICROHTTPD_INCLUDE_DIR microhttpd.h)
mark_as_advanced(RLOCK_MICROHTTPD_LIBRARY RLOCK_MICROHTTPD_INCLUDE_DIR)
if(RLOCK_MICROHTTPD_LIBRARY AND RLOCK_MICROHTTPD_INCLUDE_DIR)
    target_compile_definitions(rlock_command PRIVATE RLOCK_MICROHTTPD)
    target_include_directories(rlock_command SYSTEM PRIVATE
        ${RLOCK_MICROHTTPD_INCLUDE_DIR})
    target_link_libraries(rlock_command PRIVATE ${CMAKE_DL_LIBS})
endif()

set_target_properties(rlock_command PROPERTIES
    OUTPUT_NAME rlock
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

# Installed below any prefix it finds its library beside it, also when the tree is
# moved. A package passes -DCMAKE_SKIP_RPATH=ON.
if(shared AND NOT CMAKE_INSTALL_RPATH)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR
            IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
        set(command_rpath ${CMAKE_INSTALL_FULL_LIBDIR})
    else()
        file(RELATIVE_PATH command_rpath
            ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
        string(PREPEND command_rpath "$ORIGIN/")
        if(APPLE)
            string(REPLACE "$ORIGIN" "@loader_path" command_rpath
                ${command_rpath})
        endif()
    endif()
    set_target_properties(rlock_command PROPERTIES
        INSTALL_RPATH ${command_rpath})
endif()
