# rlock::rlock, the shared library, and rlock::rlock_static where hiredis and
# libuuid can be linked.
include(CMakeFindDependencyMacro)

include("${CMAKE_CURRENT_LIST_DIR}/rlock-shared.cmake")

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/rlock-deps.cmake")
if(TARGET rlock::hiredis AND TARGET rlock::uuid)
    include("${CMAKE_CURRENT_LIST_DIR}/rlock-static.cmake")
endif()
