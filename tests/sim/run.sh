#!/bin/sh
# run.sh [--commands N]
#
# Builds the simulator, and compares its store with a redis-server. Closes with
# "N passed, N failed".
#
#   BUILD_DIR   where to build; build-sim
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how much at a time, of the build
set -eu

cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD_DIR:-build-sim}")
commands=200000
if [ "${1-}" = --commands ]; then
    commands=$2
fi

# Whatever stops us before the end is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

tests/deps.sh sim
# shellcheck disable=SC2086
cmake -S . -B "$build" -DRLOCK_BUILD_SIM=ON -DRLOCK_BUILD_TESTS=OFF \
    -DRLOCK_INSTALL=OFF ${CMAKE_ARGS:-}
cmake --build "$build" --target rlock_sim_compare -j "${JOBS:-$(nproc)}"
trap - EXIT
exec "$build/tests/sim/compare" "$commands"
