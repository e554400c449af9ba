# The manual: rlock(1), and section 3, which manual.awk writes from the public
# headers: rlock(3), a page for each function and each header.
set(command_page "")
if(TARGET rlock_command)
    set(command_page ${PROJECT_SOURCE_DIR}/src/doc/rlock.1)
    install(FILES src/doc/rlock.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

find_program(RLOCK_AWK NAMES awk mawk gawk)
mark_as_advanced(RLOCK_AWK)
if(NOT RLOCK_AWK)
    message(STATUS "No awk: the manual's section 3 is not made")
    return()
endif()

# All pages have the date of rlock(1).
file(STRINGS src/doc/rlock.1 manual_date REGEX "^\\.Dd ")
string(REPLACE ".Dd " "" manual_date "${manual_date}")
set(manual ${PROJECT_BINARY_DIR}/manual)
file(GLOB manual_headers CONFIGURE_DEPENDS include/rlock/*.h)
set(manual_scripts src/cmake/manual-headers.awk src/cmake/manual.awk)
add_custom_command(
    OUTPUT ${manual}/man3/rlock.3
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}/man3
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual}/man3
    COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${RLOCK_AWK}
        -v date=${manual_date} -v output=${manual}/man3
        -f ${PROJECT_SOURCE_DIR}/src/cmake/manual-headers.awk
        -f ${PROJECT_SOURCE_DIR}/src/cmake/manual.awk ${manual_headers}
    DEPENDS ${manual_headers} ${manual_scripts}
    COMMENT "Writing the manual from the headers"
    VERBATIM)
add_custom_target(rlock_manuals ALL DEPENDS ${manual}/man3/rlock.3)
install(DIRECTORY ${manual}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)

# The same for a browser.
option(RLOCK_HTML "Write the manual for a browser, too (needs mandoc)" ON)
find_program(RLOCK_MANDOC NAMES mandoc)
mark_as_advanced(RLOCK_MANDOC)
if(NOT RLOCK_HTML OR NOT RLOCK_MANDOC)
    return()
endif()
add_custom_command(
    OUTPUT ${manual}/html/rlock.3.html
    COMMAND ${CMAKE_COMMAND} -DMANDOC=${RLOCK_MANDOC} -DFROM=${manual}/man3
        -DPAGE=${command_page} -DTO=${manual}/html
        -P ${PROJECT_SOURCE_DIR}/src/cmake/manual-html.cmake
    DEPENDS ${manual}/man3/rlock.3 src/doc/rlock.1 src/cmake/manual-html.cmake
    COMMENT "Writing the manual for a browser"
    VERBATIM)
add_custom_target(rlock_manuals_html ALL DEPENDS ${manual}/html/rlock.3.html)
add_dependencies(rlock_manuals_html rlock_manuals)
install(DIRECTORY ${manual}/html DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
