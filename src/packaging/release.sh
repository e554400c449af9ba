#!/usr/bin/env bash
# release.sh [--test] FOLDER
#
# Makes a release of the commit that is checked out: in FOLDER rlock-VERSION.tar.gz,
# its sha256, and, where abidw is, the dump that the next version is compared with
# (tests/install/abi/). The same commit gives the same bytes, wherever and whenever:
# that is tried by a second clone with another time zone and umask. The library that
# the tarball builds must have the names and numbers that its version promises.
#
# With --test the tarball is unpacked, built, and passes tests/run.sh --quick in a
# Debian 13 that has nothing; that takes root, or sudo, a network, and some minutes.
set -eu -o pipefail

test=
if [ "${1-}" = --test ]; then
    test=yes
    shift
fi
if [ $# != 1 ]; then
    sed -n '2s/^# /usage: /p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

die() {
    echo "release.sh: $1" >&2
    exit 1
}

part() {
    sed -n "s/^#define RLOCK_VERSION_$1 //p" "$root/include/rlock/base.h"
}
version=$(part MAJOR).$(part MINOR).$(part PATCH)
name=rlock-$version

[ -z "$(git -C "$root" status --porcelain)" ] ||
    die "there is something that is not committed"
grep -qx "## $version" "$root/CHANGELOG.md" ||
    die "CHANGELOG.md says nothing of $version"

# tarball FILE: of a clone of its own; gzip -n: without name and time
tarball() {
    git clone -q --no-local "$root" "$work/clone"
    git -C "$work/clone" archive --format=tar --prefix="$name/" HEAD |
        gzip -9 -n >"$1"
    rm -rf "$work/clone"
}
tarball "$work/$name.tar.gz"
(
    umask 077
    TZ=Asia/Kathmandu tarball "$work/again"
)
cmp "$work/$name.tar.gz" "$work/again" || die "twice made, it is not the same"

tar -xzf "$work/$name.tar.gz" -C "$work"
cmake -S "$work/$name" -B "$work/build" >"$work/log" &&
    cmake --build "$work/build" -j "$(nproc)" --target rlock >>"$work/log" || {
    tail -n 30 "$work/log" >&2
    die "it does not build"
}
library=$(find "$work/build" -name 'librlock.so')
if command -v abidw >/dev/null; then
    abi=$work/$name/tests/install/abi.sh
    "$abi" "$library" "$work/$name/include"
    "$abi" --dump "$library" "$work/$name/include" >"$work/$name.abi"
else
    echo "There is no abidw: what programs are compiled against is not compared."
fi

if [ -n "$test" ]; then
    BUILD_DIR=$work/debian13 "$work/$name/tests/elsewhere.sh" debian13 --quick
fi

cd "$work"
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
for file in "$name".tar.gz "$name".tar.gz.sha256 "$name".abi; do
    if [ -e "$file" ]; then
        cp "$file" "$out"
        echo "$out/$file"
    fi
done
