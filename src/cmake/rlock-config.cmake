# rlock::rlock, and rlock::rlock_static where hiredis and libuuid can be
# linked, and OpenSSL, if it was built with that. An rlock that was built as one kind only is rlock::rlock, whichever
# it is.
include(CMakeFindDependencyMacro)

include("${CMAKE_CURRENT_LIST_DIR}/rlock-shared.cmake" OPTIONAL)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/rlock-deps.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/rlock-features.cmake")
if(RLOCK_HAS_TLS)
    find_package(OpenSSL QUIET)
endif()
if(TARGET rlock::hiredis AND TARGET rlock::uuid AND
        (TARGET OpenSSL::SSL OR NOT RLOCK_HAS_TLS))
    include("${CMAKE_CURRENT_LIST_DIR}/rlock-static.cmake" OPTIONAL)
endif()
if(NOT TARGET rlock::rlock)
    if(TARGET rlock::rlock_static)
        add_library(rlock::rlock INTERFACE IMPORTED)
        set_target_properties(rlock::rlock PROPERTIES
            INTERFACE_LINK_LIBRARIES rlock::rlock_static)
    else()
        set(rlock_FOUND FALSE)
        set(rlock_NOT_FOUND_MESSAGE
            "The static librlock needs hiredis, libuuid and perhaps OpenSSL, "
            "not found")
    endif()
endif()
