#!/bin/sh
# peers.sh BUILD_DIR
#
# Prints the rows that compare an uncontended pair with that of other libraries,
# which it fetches and builds a program for. What cannot be had is left out, and
# a row says why.
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
out=$build/peers
mkdir -p "$out"

left_out() {
    echo "| - beside $1 | | left out: $2 | |"
}

# Each leaves $out/NAME/peer behind, or says why not.
redisson() {
    if ! command -v mvn >/dev/null || ! javac -version >/dev/null 2>&1; then
        echo "there is no Maven or no JDK"
    elif ! tests/interop/redisson/build.sh tests/bench/peers/Pairs.java \
        "$out/redisson" >&2; then
        echo "it cannot be fetched or built"
    fi
}
redis_plus_plus() {
    header='#include <sw/redis++/redis++.h>'
    mkdir -p "$out/redis_plus_plus"
    if ! echo "$header" | ${CXX:-c++} -E -x c++ - >/dev/null 2>&1; then
        echo "it is not installed, and there is no package of it"
    elif ! ${CXX:-c++} -O2 -std=c++17 -o "$out/redis_plus_plus/peer" \
        tests/bench/peers/pairs.cc -lredis++ -lhiredis -pthread >&2; then
        echo "its program cannot be built"
    fi
}

set --
why=$(redis_plus_plus)
if [ -z "$why" ]; then
    set -- "$@" redis-plus-plus "$out/redis_plus_plus/peer"
else
    left_out redis-plus-plus "$why"
fi
why=$(redisson)
if [ -z "$why" ]; then
    set -- "$@" Redisson "$out/redisson/peer"
else
    left_out Redisson "$why"
fi
[ $# = 0 ] || tests/with-redis.sh "$build/bench/peers" "$@"
