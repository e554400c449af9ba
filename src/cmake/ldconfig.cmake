# Runs after an installation. The loader knows the libraries in /usr and
# /usr/local by a list that ldconfig makes: without it a program that was just
# linked ends in "librlock.so.0.3: cannot open shared object file".
#
# Nothing is done for a stage of a package (DESTDIR, or another prefix), nor
# by a user who may not.
if(NOT "$ENV{DESTDIR}" STREQUAL "" OR
        NOT CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/?$" OR
        IS_ABSOLUTE "${libdir}")
    return()
endif()
execute_process(COMMAND id -u OUTPUT_VARIABLE uid ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT uid STREQUAL "0")
    return()
endif()
find_program(ldconfig ldconfig PATHS /sbin /usr/sbin)
if(NOT ldconfig)
    return()
endif()
message(STATUS "Running: ${ldconfig}")
execute_process(COMMAND ${ldconfig} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(WARNING "${ldconfig} failed: programs may not find librlock.so")
endif()
