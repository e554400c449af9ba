#!/bin/sh
# seam.sh LIBRARY.a...
#
# What the libraries take from outside has to be of the world, inert, pure, or of
# another library. Anything else would wait, tell the time, talk or draw behind
# the world's back, and is complained of, by the object that calls it. What it
# would complain of is then compiled, and each time it must complain of that, and
# of nothing else.
#
#   CC   cc
set -eu

LC_ALL=C
export LC_ALL
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

# Defined by the world: they are its time, its threads, its bytes.
world='
clock_gettime nanosleep
poll close shutdown read write recv send fcntl fstat
socket connect setsockopt getsockopt eventfd epoll_create1 epoll_ctl getaddrinfo
getrandom gethostname getpid syscall
pthread_create pthread_join pthread_once pthread_setname_np
pthread_key_create pthread_key_delete pthread_getspecific pthread_setspecific
pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock
pthread_mutex_trylock pthread_mutex_unlock
pthread_cond_init pthread_cond_destroy pthread_cond_wait pthread_cond_timedwait
pthread_cond_signal pthread_cond_broadcast
malloc calloc realloc free strdup
'

# Of libc, and harmless: they change what nobody here looks at, or read files of
# certificates, which the program names; and a page that a fork clears.
inert='
pthread_self pthread_attr_init pthread_attr_destroy pthread_attr_getstacksize
pthread_attr_setstacksize pthread_attr_setdetachstate
pthread_condattr_init pthread_condattr_destroy pthread_condattr_setclock
pthread_setcancelstate pthread_sigmask pthread_atfork
sigaddset sigemptyset sigfillset sigismember sigpending sigtimedwait
freeaddrinfo gai_strerror inet_pton bind
access stat getenv fopen fgets fclose
mmap munmap madvise sysconf
'

# Of what they are given they make the same each time.
pure='
memcpy memcmp bcmp memchr memset memmove strlen strcmp strncmp strcasecmp strncasecmp
strchr strrchr strstr stpcpy strcpy strncpy strspn strcspn
strtol strtoll strtoul strerror snprintf vsnprintf qsort
__memcpy_chk __memmove_chk __memset_chk __stpcpy_chk __strcpy_chk __strncpy_chk
__snprintf_chk __vsnprintf_chk __sprintf_chk
__isoc23_strtol __isoc23_strtoll __isoc23_strtoul
__ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __xpg_strerror_r
__errno_location __tls_get_addr __stack_chk_fail _GLOBAL_OFFSET_TABLE_
abort __assert_fail
'

# Other libraries': hiredis, libuuid, OpenSSL. The first is looked at itself.
foreign='^(redis|freeReplyObject$|uuid_|SSL_|ERR_|BIO_|X509_|TLS_|OPENSSL_)'

# holes LIBRARY...: complaints, a line each
holes() {
    for library in "$@"; do
        nm -A --defined-only "$library" 2>/dev/null | awk '{ print "has", $NF }'
        nm -A -u "$library" 2>/dev/null
    done | awk -v foreign="$foreign" -v known="$world $inert $pure" '
        BEGIN {
            n = split(known, word, /[ \n]+/)
            for (i = 1; i <= n; i++)
                ok[word[i]]
        }
        $1 == "has" { ok[$2]; next }
        {
            n = split($1, part, ":")
            object[$NF] = part[n - 1] == "" ? part[n] : part[n - 1]
        }
        END {
            for (name in object)
                if (!(name in ok) && name !~ foreign)
                    print object[name] " calls " name
        }' | sort
}

status=0
fail() {
    echo "seam.sh: $*" >&2
    status=1
}

if [ $# = 0 ]; then
    sed -n '2s/^# /usage: /p' "$0" >&2
    exit 2
fi
for library in "$@"; do
    [ -r "$library" ] || fail "cannot read $library"
done
holes "$@" >"$work/holes"
if [ -s "$work/holes" ]; then
    cat "$work/holes" >&2
    fail "$(wc -l <"$work/holes") holes in the seam"
fi

# breaks COMPLAINTS DECLARATION CALL: what is called as well is noticed
breaks() {
    printf '%s;\nvoid tried(void);\nvoid tried(void) { %s; }\n' "$2" "$3" \
        >"$work/tried.c"
    rm -f "$work/tried.a" "$work/tried.o"
    ${CC:-cc} -fno-builtin -c -o "$work/tried.o" "$work/tried.c"
    ar rc "$work/tried.a" "$work/tried.o" 2>/dev/null
    got=$(holes "$work/tried.a")
    [ "$got" = "$1" ] || fail "expected \"$1\", got \"$got\""
}

breaks '' 'int poll(void *, unsigned long, int)' 'poll(0, 0, 0)'
breaks '' 'void *memset(void *, int, unsigned long)' 'memset(0, 0, 0)'
breaks '' 'int own(void); int own(void) { return 0; }' 'own()'
breaks '' 'void redisFree(void *)' 'redisFree(0)'
for name in select rand random time gettimeofday usleep sleep __poll_chk \
    __recv_chk __read_chk sendmsg recvmsg accept epoll_wait kevent ppoll \
    clock_nanosleep pthread_rwlock_wrlock pthread_cond_clockwait \
    pthread_detach sem_wait getppid uname printf my_redis; do
    breaks "tried.o calls $name" "int $name(void)" "$name()"
done

exit $status
