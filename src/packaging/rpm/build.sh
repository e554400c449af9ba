#!/bin/sh
# build.sh TARBALL DIRECTORY
#
# Builds the packages of rlock.spec by rpmbuild below DIRECTORY, and looks that
# each has what it should. On a system that has no RPM packages (rpmbuild of
# Debian) what it needs is taken to be there.
#
#   RPMBUILD_ARGS   more arguments
set -eu

here=$(cd "$(dirname "$0")" && pwd)
tarball=$(realpath "$1")
mkdir -p "$2/SOURCES"
top=$(realpath "$2")
cp "$tarball" "$top/SOURCES/"
rpm -q glibc >/dev/null 2>&1 || RPMBUILD_ARGS="--nodeps ${RPMBUILD_ARGS:-}"
# shellcheck disable=SC2086
rpmbuild -bb --define "_topdir $top" ${RPMBUILD_ARGS:-} "$here/rlock.spec" \
    >"$top/log" 2>&1 || {
    tail -n 40 "$top/log"
    exit 1
}

has() { # PACKAGE FILE
    rpm -qpl "$top"/RPMS/*/"$1"-[0-9]*.rpm | grep -q "$2\$" || {
        echo "$1 has no $2"
        exit 1
    }
}
has rlock /bin/rlock
has rlock '/man1/rlock.1.*'
has librlock '/librlock.so.[0-9.]*'
has librlock-devel /include/rlock/rlock.h
has librlock-devel '/man3/rlock_acquire.3.*'
ls "$top"/RPMS/*/
