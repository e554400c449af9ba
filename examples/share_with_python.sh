#!/usr/bin/env bash
# share_with_python.sh: a C program and a Python program take turns on one lock.
#
# The Python program uses the Lock of redis-py, which is installed into a virtual
# environment in the build directory; the server is gone afterwards. Ends with
# status 0 when each has seen the other's holds, and with 77 where Python or
# the network is missing.
#
#   BUILD_DIR   a build to use as it is; without it, installs what is missing
#               and builds into build/
set -eu -o pipefail

cd "$(dirname "$0")/.."
exec </dev/null

redis_py=5.0.8

skip() {
    printf 'share_with_python.sh: skipped: %s\n' "$1"
    exit 77
}

if [ -z "${BUILD_DIR-}" ]; then
    BUILD_DIR=build
    tests/deps.sh demo
    cmake -S . -B build -DRLOCK_BUILD_EXAMPLES=ON >/dev/null
    cmake --build build -j "$(nproc)" --target example_share_with_python \
        >/dev/null
fi

# A broken or outdated environment is made anew.
python=$BUILD_DIR/venv/bin/python
ready() {
    "$python" -c "import redis; assert redis.__version__ == '$redis_py'" \
        >/dev/null 2>&1
}
if ! ready; then
    tests/deps.sh python || skip "no Python 3 with the module venv"
    python3 -m venv --clear "$BUILD_DIR/venv" ||
        skip "no Python 3 with the module venv"
    "$python" -m pip install --quiet --disable-pip-version-check \
        --no-input --retries 1 --timeout 15 "redis==$redis_py" ||
        skip "redis-py $redis_py cannot be installed"
    ready || skip "redis-py $redis_py does not work here"
fi

exec tests/with-redis.sh "$python" examples/share_with_python.py \
    "$BUILD_DIR/examples/share_with_python"
