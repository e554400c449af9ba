#!/usr/bin/env bash
# Shares locks with other libraries, the real ones, each in the language it is
# made for: installs them at fixed versions with their own package managers,
# builds a peer that speaks for each, and has checks.py ask what the two sides
# see of each other. Closes with "N passed, N failed". A part whose toolchain
# is missing is skipped; with CI set, it fails.
#
#   BUILD_DIR   where the library is built, if need be; build-interop
#   CMAKE_ARGS  more arguments for CMake, split at blanks
set -eu -o pipefail

cd "$(dirname "$0")/../.."
root=$PWD
build=$(realpath -m "${BUILD_DIR:-build-interop}")
out=$build/interop

# Whatever stops us before the checks run is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

# need WHY COMMAND [ARGUMENT]...: fails, with what is to be said, if that fails
need() {
    if ! "${@:2}" >/dev/null 2>&1; then
        if [ -z "${CI-}" ]; then
            echo "$1" >"$dir/skip"
        fi
        echo "$1"
        return 1
    fi
}

script() {
    printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$dir/peer"
    chmod +x "$dir/peer"
}

compile() {
    ${CC:-cc} -O2 -std=c11 -D_GNU_SOURCE -Wall -Wextra -I"$root/include" \
        -o "$dir/peer" peer.c ../peer.c -L"$build" "-Wl,-rpath,$build" "$@"
}

# Each is called in the folder of its peer and leaves $dir/peer behind. They
# are conditions, so that set -e does not work in them.
rlock() {
    compile -lrlock
}
classic() {
    compile -lhiredis
}
redisson() {
    need 'there is no Maven' command -v mvn &&
        need 'there is no JDK' javac -version &&
        ./build.sh Peer.java "$dir" -XX:+UseSerialGC -XX:TieredStopAtLevel=1
}
redis-py() {
    need 'there is no Python with venv' python3 -c 'import ensurepip' &&
        python3 -m venv "$dir/venv" &&
        "$dir/venv/bin/pip" install -q -r requirements.txt &&
        script "'$dir/venv/bin/python'" "'$PWD/peer.py'"
}
new_go() {
    [ -n "$(go env GOTOOLCHAIN)" ]
}
redsync() {
    # Older ones cannot fetch the release that go.mod asks for.
    need 'there is no Go 1.21 or later' new_go &&
        go build -mod=readonly -o "$dir/peer" .
}
node-redlock() {
    need 'there is no Node.js' command -v node &&
        need 'there is no npm' command -v npm &&
        cp package.json package-lock.json peer.js "$dir" &&
        npm ci --silent --prefix "$dir" &&
        script node "'$dir/peer.js'"
}

# What cannot be had is left to the checks: they skip it.
tests/deps.sh interop || tests/deps.sh demo
if [ ! -e "$build/CMakeCache.txt" ]; then
    # shellcheck disable=SC2086
    cmake -S . -B "$build" -DRLOCK_BUILD_TESTS=OFF \
        -DRLOCK_BUILD_EXAMPLES=OFF ${CMAKE_ARGS:-}
fi
cmake --build "$build" -j "$(nproc)" --target rlock

for part in rlock classic redisson redis-py redsync node-redlock; do
    printf '\n==> %s\n' "$part"
    dir=$out/$part
    mkdir -p "$dir"
    rm -f "$dir/peer" "$dir/skip"
    (cd "tests/interop/$part" && "$part") || echo "No peer of $part"
done

need 'there is no Python' command -v python3
trap - EXIT
echo
exec python3 tests/interop/checks.py "$out"
