# Looks at the hiredis that was found. Sets RL_HIREDIS_..., see
# rlock_config.h.in.
include(CheckCSourceCompiles)

# Something may have been found that is for another machine: the build one's,
# in a cross build. Calls what the library calls, for a libuuid that was built
# for it may have no more. A target of the parent project may not be built yet.
function(rlock_check_links)
    set(CMAKE_REQUIRED_LIBRARIES rlock::hiredis rlock::uuid)
    check_c_source_compiles("
        #include <hiredis/hiredis.h>
        #include <uuid/uuid.h>
        int main(void) {
            uuid_t id = {0};
            char text[37];
            uuid_unparse_lower(id, text);
            redisFree(0);
            return 0;
        }" RLOCK_DEPS_LINK)
    if(NOT RLOCK_DEPS_LINK)
        unset(RLOCK_DEPS_LINK CACHE)
        message(FATAL_ERROR "These cannot be linked with this compiler: "
            "${RLOCK_hiredis_LIBRARY} ${RLOCK_uuid_LIBRARY}. See "
            "CMakeFiles/CMakeError.log; in a cross build, set "
            "CMAKE_FIND_ROOT_PATH or CMAKE_SYSROOT, or RLOCK_uuid_LIBRARY and "
            "RLOCK_hiredis_LIBRARY")
    endif()
endfunction()
if(RLOCK_hiredis_LIBRARY AND RLOCK_uuid_LIBRARY)
    rlock_check_links()
endif()

# Atomic 64-bit numbers are calls of a library on some processors, mostly those
# of 32 bits. RLOCK_ATOMIC_LIBRARY is that, or empty.
function(rlock_probe_atomics result libraries)
    set(CMAKE_REQUIRED_LIBRARIES ${libraries})
    check_c_source_compiles("
        #include <stdatomic.h>
        #include <stdint.h>
        static _Atomic int64_t number;
        int main(void) {
            int64_t was = atomic_exchange(&number, 2);
            atomic_compare_exchange_strong(&number, &was, 3);
            return (int)(atomic_fetch_add(&number, 1) + atomic_load(&number));
        }" ${result})
endfunction()
set(RLOCK_ATOMIC_LIBRARY "")
rlock_probe_atomics(RLOCK_ATOMICS_ARE_BUILT_IN "")
if(NOT RLOCK_ATOMICS_ARE_BUILT_IN)
    rlock_probe_atomics(RLOCK_ATOMICS_ARE_A_LIBRARY atomic)
    if(NOT RLOCK_ATOMICS_ARE_A_LIBRARY)
        message(FATAL_ERROR "Atomic 64-bit numbers cannot be linked, with "
            "-latomic or without; see CMakeFiles/CMakeError.log")
    endif()
    set(RLOCK_ATOMIC_LIBRARY atomic)
endif()

# OpenSSL for rediss://. RL_HAS_OPENSSL is ON when there is one that is new
# enough, and that can be linked: what is found may be another machine's.
function(rlock_probe_openssl)
    set(CMAKE_REQUIRED_LIBRARIES OpenSSL::SSL OpenSSL::Crypto)
    check_c_source_compiles("
        #include <openssl/ssl.h>
        int main(void) {
            SSL_CTX_set_options(0, SSL_OP_NO_RENEGOTIATION);
            return SSL_CTX_new(TLS_client_method()) == 0;
        }" RLOCK_OPENSSL_LINKS)
endfunction()
set(RL_HAS_OPENSSL OFF)
set(RLOCK_TLS_LIBRARIES "")
if(RLOCK_TLS)
    find_package(OpenSSL 1.1.1 QUIET)
    if(TARGET OpenSSL::SSL)
        rlock_probe_openssl()
        set(RL_HAS_OPENSSL ${RLOCK_OPENSSL_LINKS})
        if(NOT RLOCK_OPENSSL_LINKS)
            unset(RLOCK_OPENSSL_LINKS CACHE)
            set(RL_HAS_OPENSSL OFF)
        endif()
    endif()
    if(RL_HAS_OPENSSL)
        set(RLOCK_TLS_LIBRARIES OpenSSL::SSL OpenSSL::Crypto)
    elseif(NOT RLOCK_TLS STREQUAL "AUTO")
        message(FATAL_ERROR "RLOCK_TLS is ON, and no OpenSSL 1.1.1 or newer "
            "can be linked; on Debian and Ubuntu: apt-get install libssl-dev")
    endif()
endif()
message(STATUS "rlock: TLS (rediss://) is ${RL_HAS_OPENSSL}")

# What compiles the library's probes in, if they are wanted; see src/base/probe.h.
# A definition, and nothing of rlock_config.h: the amalgamation is compiled
# elsewhere. Other systems have another header of that name.
set(RLOCK_PROBES "")
if(RLOCK_USDT)
    check_c_source_compiles("
        #define SDT_USE_VARIADIC 1
        #include <sys/sdt.h>
        int main(int n, char **arg) {
            STAP_PROBEV(rlock, test, arg[0], n);
            return 0;
        }" RLOCK_SDT_COMPILES)
    if(RLOCK_SDT_COMPILES)
        set(RLOCK_PROBES RL_HAS_SDT)
    else()
        unset(RLOCK_SDT_COMPILES CACHE)
    endif()
    if(NOT RLOCK_PROBES AND NOT RLOCK_USDT STREQUAL "AUTO")
        message(FATAL_ERROR "RLOCK_USDT is ON, and there is no <sys/sdt.h> of "
            "SystemTap's; on Debian and Ubuntu: apt-get install "
            "systemtap-sdt-dev")
    endif()
endif()

# Asked of the compiler, because hiredis' version macros have been wrong in
# releases; and without linking.
function(rlock_probe_hiredis result expression)
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    set(CMAKE_REQUIRED_INCLUDES ${RLOCK_hiredis_INCLUDES})
    check_c_source_compiles("
        #include <hiredis/hiredis.h>
        redisContext context;
        redisReplyObjectFunctions functions;
        int main(void) { return ${expression}; }" ${result})
endfunction()
rlock_probe_hiredis(RL_HIREDIS_USABLE "context.fd")
if(NOT RL_HIREDIS_USABLE)
    unset(RL_HIREDIS_USABLE CACHE)
    message(FATAL_ERROR "<hiredis/hiredis.h> does not compile with the include "
        "folders of hiredis: ${RLOCK_hiredis_INCLUDES}")
endif()
rlock_probe_hiredis(RL_HIREDIS_READER_SIZE_T "_Generic(functions.createArray,
    void *(*)(const redisReadTask *, size_t): 0)")
rlock_probe_hiredis(RL_HIREDIS_HAS_DOUBLE
    "!functions.createDouble && !functions.createBool")
rlock_probe_hiredis(RL_HIREDIS_HAS_FUNCS "!context.funcs")
