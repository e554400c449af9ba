# Pages of the manual for a browser, which refer to each other.
#
#   cmake -DMANDOC=PROGRAM -DFROM=FOLDER -DPAGE=FILE -DTO=FOLDER -P manual-html.cmake
#
# FROM has those of section 3, PAGE is rlock(1), or empty. A page that is a link to another one
# is so here, too.
set(pages ${TO}.pages) # all in one folder: mandoc looks there for what it refers to
file(REMOVE_RECURSE ${TO} ${pages})
file(MAKE_DIRECTORY ${TO})
file(COPY ${FROM}/ ${PAGE} DESTINATION ${pages})
file(GLOB names RELATIVE ${pages} ${pages}/*)
foreach(name IN LISTS names)
    set(html ${TO}/${name}.html)
    if(IS_SYMLINK ${pages}/${name})
        file(READ_SYMLINK ${pages}/${name} other)
        file(CREATE_LINK ${other}.html ${html} SYMBOLIC)
        continue()
    endif()
    execute_process(
        COMMAND ${MANDOC} -T html
            -O "man=%N.%S.html;https://man7.org/linux/man-pages/man%S/%N.%S.html"
            ${name}
        WORKING_DIRECTORY ${pages} OUTPUT_FILE ${html} RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${MANDOC} cannot read ${name}")
    endif()
endforeach()
file(REMOVE_RECURSE ${pages})
