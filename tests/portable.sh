#!/usr/bin/env bash
# Compiles the library for systems that are not at hand: musl, FreeBSD, macOS,
# by clang as PyPI's ziglang brings it, with their C libraries' headers. Nothing
# is run; tests/elsewhere.sh does that. Closes with "N passed, N failed".
#
#   BUILD_DIR   where to build; build-portable
set -eu -o pipefail

cd "$(dirname "$0")/.."
build=$(realpath -m "${BUILD_DIR:-build-portable}")
targets='aarch64-linux-musl x86_64-freebsd aarch64-macos'
passed=0 failed=0

# Whatever stops us before that is a failure, and is said so.
trap 'echo "0 passed, 1 failed"' EXIT

# What this system has of hiredis, libuuid and OpenSSL, without the rest of its
# headers; OpenSSL's lie in two folders, where there are several processors.
copy_headers() {
    local header path
    mkdir -p "$build/include/openssl"
    printf '#include <openssl/%s.h>\n' ssl err x509v3 | cc -M -x c - |
        tr ' \\' '\n\n' | grep '/openssl/[a-z0-9_]*[.]h$' | while read -r path; do
        cp "$path" "$build/include/openssl"
    done
    mkdir -p "$build/include"
    for header in hiredis/hiredis.h uuid/uuid.h; do
        path=$(echo "#include <$header>" | cc -M -x c - | tr ' \\' '\n\n' |
            grep -m 1 "/$header\$")
        cp -R "$(dirname "$path")" "$build/include"
    done
}

# compile TARGET SOURCE
compile() {
    "$build/venv/bin/python" -m ziglang cc -target "$1" -std=c11 \
        -D_GNU_SOURCE -Wall -Wextra -Werror \
        -Iinclude -Isrc -I"$build/generated" -isystem "$build/include" \
        -c "$2" -o "$build/$1/${2//\//_}.o"
}

tests/deps.sh python
tests/deps.sh build
cmake -S . -B "$build" -DRLOCK_BUILD_TESTS=OFF -DRLOCK_BUILD_BENCH=OFF \
    -DRLOCK_BUILD_EXAMPLES=OFF
# Of that build, only what is generated.
cmake --build "$build" --target rlock_generated
copy_headers
python3 -m venv "$build/venv"
"$build/venv/bin/pip" install --quiet --disable-pip-version-check \
    'ziglang>=0.15'
export -f compile
export build

trap - EXIT
for target in $targets; do
    mkdir -p "$build/$target"
    if find src -name '*.c' -print0 | sort -z |
        xargs -0 -P "$(nproc)" -I{} bash -c 'compile "$@"' - "$target" {}; then
        echo "$target: ok"
        passed=$((passed + 1))
    else
        echo "$target: FAILED"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))
