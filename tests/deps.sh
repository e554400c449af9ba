#!/bin/sh
# deps.sh build|demo|examples|test|sim|mutants|model|planted|python|interop|fuzz
# deps.sh coverage|ci|peers|pictures|debian13|musl|aarch64|deb
#
# Installs what is missing for building, the demo, all examples, the tests, the
# simulator, the mutants, the protocol's model, the example with Python, the tests
# with other clients, fuzzing, counting what the tests cover, the checks of .ci/run,
# the benchmarks beside other libraries, the documents' pictures, the tests elsewhere
# (tests/elsewhere.sh), or Debian packages, on Debian and Ubuntu. With everything there
# it touches no network.
set -eu

missing=
# need PACKAGE [WHAT]: what of it is not there
need() {
    case " $missing " in
    *" $1 "*) return ;;
    esac
    missing="$missing $1"
    echo "missing: ${2:-$1}${2:+ (package $1)}" >&2
}
program() {
    command -v "$1" >/dev/null 2>&1 || need "$2" "$1"
}
header() {
    echo "#include <$1>" | cc -E - >/dev/null 2>&1 || need "$2" "$1"
}

for_build() {
    program cc gcc
    program make make
    program cmake cmake
    header stdlib.h libc6-dev
    header hiredis/hiredis.h libhiredis-dev
    header uuid/uuid.h uuid-dev
    header openssl/ssl.h libssl-dev
}
for_demo() {
    for_build
    program redis-server redis-server
    program redis-cli redis-tools
}
for_examples() {
    for_demo
    header uv.h libuv1-dev
    header event2/event.h libevent-dev
    program c++ g++
}
for_test() {
    for_examples
    header criterion/criterion.h libcriterion-dev
    header curses.h libncurses-dev
    header microhttpd.h libmicrohttpd-dev
    header sys/sdt.h systemtap-sdt-dev
    program openssl openssl
    program ip iproute2
    program python3 python3
    for python in python3 /usr/bin/python3 none; do
        [ $python != none ] || need python3-prometheus-client
        ! $python -c 'import prometheus_client' 2>/dev/null || break
    done
}
for_sim() {
    for_demo
    header lua5.1/lua.h liblua5.1-0-dev
    program patch patch
}
for_mutants() {
    for_test
    for_sim
    for_coverage
}
for_python() {
    program python3 python3
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || need python3-venv
}
redisson() {
    program javac default-jdk-headless
    program mvn maven
}
for_interop() {
    for_demo
    for_python
    redisson
    program go golang-go
    program node nodejs
    program npm npm
}
# Few releases have a package of redis-plus-plus; elsewhere it may have been
# installed by hand.
redis_plus_plus() {
    if ! echo '#include <sw/redis++/redis++.h>' | c++ -E -x c++ - \
        >/dev/null 2>&1 && apt-cache show libredis++-dev >/dev/null 2>&1; then
        program c++ g++
        need libredis++-dev
    fi
}
for_peers() {
    for_demo
    redisson
    redis_plus_plus
}
for_pictures() {
    for_demo
    program socat socat
}
# What sanitizers, fuzzing and counting link with comes apart from clang, or,
# in other releases, with it.
clang_runtime() {
    if ! echo 'int main(void) { return 0; }' |
        clang -fsanitize=address -x c -o /dev/null - >/dev/null 2>&1 &&
        apt-cache show libclang-rt-dev >/dev/null 2>&1; then
        need libclang-rt-dev
    fi
}
for_fuzz() {
    for_build
    program clang clang
    clang_runtime
}
for_coverage() {
    for_test
    program clang clang
    program llvm-cov llvm
    clang_runtime
}
# The other compiler and the other standard library for C++.
for_cxx() {
    program g++ g++
    program clang++ clang
    if ! echo 'int main() { return 0; }' |
        clang++ -stdlib=libc++ -x c++ -o /dev/null - >/dev/null 2>&1; then
        need libc++-dev
        need libc++abi-dev
    fi
}
for_model() {
    program cc gcc
    header stdlib.h libc6-dev
    program spin spin
}
for_planted() {
    for_test
    program patch patch
}
for_debian13() {
    program debootstrap debootstrap
    archive_key
}
# The key of Debian's archive, which Ubuntu does not bring.
archive_key() {
    if [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
        need debian-archive-keyring
    fi
}
for_deb() {
    for_debian13
}
for_musl() {
    for_test
    program musl-gcc musl-tools
    program xz xz-utils
    archive_key
}
for_aarch64() {
    for_test
    program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    if [ ! -e /usr/aarch64-linux-gnu/include/stdlib.h ]; then
        need libc6-dev-arm64-cross
    fi
    program qemu-aarch64-static qemu-user-static
    program xz xz-utils
    archive_key
}
for_ci() {
    for_coverage
    for_planted
    for_sim
    for_model
    for_python
    for_cxx
    program clang-format clang-format
    program ccache ccache
    program ninja ninja-build
    program mold mold
    program pkg-config pkg-config
    program abidiff abigail-tools
    program mandoc mandoc
    program promtool prometheus
    program bpftrace bpftrace
    program curl curl
    if [ ! -e /usr/share/bash-completion/bash_completion ]; then
        need bash-completion
    fi
}

case ${1-} in
build | demo | examples | test | sim | mutants | model | planted | python | \
    interop | fuzz | coverage | ci | peers | pictures | debian13 | musl | aarch64 | deb)
    "for_$1"
    ;;
*)
    sed -n '/^# deps.sh/s/^# /usage: /p' "$0" >&2
    exit 2
    ;;
esac
if [ -z "$missing" ]; then
    exit 0
fi

# The last line is what is to be done.
give_up() {
    echo "$1" >&2
    echo "Please install what is missing: ${2-sudo apt-get install}$missing" >&2
    exit 1
}
if ! command -v apt-get >/dev/null 2>&1; then
    give_up "There is no apt-get here. The names are those of Debian's packages." ''
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    sudo='sudo -n'
    $sudo true 2>/dev/null ||
        give_up "Only root can install packages, and sudo asks for a password."
fi
# What apt has to say is of interest only when it fails.
log=$(mktemp "${TMPDIR:-/tmp}/rlock-apt.XXXXXX")
apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

# Each user of Redis here starts a server of its own: the package's service
# shall run neither now nor after the next boot.
no_service() {
    policy=/usr/sbin/policy-rc.d
    if [ -e $policy ]; then
        return
    fi
    trap '$sudo rm -f $policy' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
    $sudo chmod 755 $policy
}

case $missing in
*redis-server*) no_service ;;
esac
echo "Installing:$missing; what apt says: $log"
# A broken third-party source is no obstacle; the installation decides.
apt update || :
# shellcheck disable=SC2086
apt install --no-install-recommends $missing || {
    tail -n 15 "$log" >&2
    give_up "They could not be installed (no network?). All that apt said: $log"
}
case $missing in
*redis-server*)
    $sudo update-rc.d redis-server disable >>"$log" 2>&1 || :
    ;;
esac
rm -f "$log"
# Some can be looked for only now: clang's own libraries, say.
if [ -z "${RLOCK_DEPS_AGAIN-}" ]; then
    RLOCK_DEPS_AGAIN=1 "$0" "$1"
fi
