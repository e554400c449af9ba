#!/usr/bin/env bash
# deb.sh [RELEASE]...
#
# Makes the Debian packages of src/packaging/debian for each of these releases of
# Debian, bookworm and trixie if none is named, in a system of that release that has
# nothing but what they say they need, and closes with "N passed, N failed". lintian
# has nothing to say of them; made again, elsewhere, they are the same bytes. In
# another bare system they are installed, used at a real server, and purged. Needs to
# be root, or sudo.
#
#   BUILD_DIR  where the systems are, and what was made: packages in RELEASE/first;
#              build-deb
set -eu -o pipefail

cd "$(dirname "$0")/../.."
build=$(realpath -m "${BUILD_DIR:-build-deb}")
passed=0 failed=0
# Whatever stops this script before its end is a failure.
trap 'echo "$passed passed, $((failed + 1)) failed"' EXIT
sudo=
if [ "$(id -u)" != 0 ]; then
    sudo=sudo
fi
version=$(sed -n '1s/.*(\(.*\)-.*/\1/p' src/packaging/debian/changelog)

check() {
    local name="$release: $1" began=$SECONDS
    shift
    if "$@" >"$at/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok - $name ($((SECONDS - began)) s)"
    else
        failed=$((failed + 1))
        echo "not ok - $name"
        tail -n 60 "$at/log"
    fi
}

# --- Systems ----------------------------------------------------------------

# inside SYSTEM COMMAND...; the mounts are in a namespace of their own, and end with it
inside() {
    # shellcheck disable=SC2016
    $sudo unshare --mount --pid --fork sh -euc '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
            DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"' - "$at/$1" "${@:2}"
}

# A bare system, made once; nothing that is installed there starts a service.
bare() {
    if [ -e "$at/complete" ]; then
        return
    fi
    $sudo rm -rf "$at/bare"
    $sudo debootstrap --variant=minbase "$release" "$at/bare" || return 1
    printf '#!/bin/sh\nexit 101\n' | $sudo tee "$at/bare/usr/sbin/policy-rc.d"
    $sudo chmod 755 "$at/bare/usr/sbin/policy-rc.d" && touch "$at/complete"
}

copy_of_bare() {
    $sudo rm -rf "$at/$1" && $sudo cp -a "$at/bare" "$at/$1" &&
        inside "$1" apt-get -q update
}

# --- Making them ------------------------------------------------------------

# What is in the repository, and the folder debian/ beside it.
sources() {
    rm -rf "$at/source"
    mkdir "$at/source"
    git ls-files -co --exclude-standard -z |
        tar --null -T - --sort=name --owner=0 --group=0 --numeric-owner \
            --mtime="$(git log -1 --format=%cI)" \
            --transform "s|^|rlock-$version/|" -cf - |
        gzip -n >"$at/source/rlock_$version.orig.tar.gz" &&
        tar -C "$at/source" -xf "$at/source/rlock_$version.orig.tar.gz" &&
        cp -R src/packaging/debian "$at/source/rlock-$version/debian"
}

needs_what_it_says() {
    sources && copy_of_bare maker && $sudo cp -R "$at/source" "$at/maker/first" &&
        inside maker apt-get -qy --no-install-recommends install \
            build-essential lintian &&
        inside maker apt-get -qy --no-install-recommends build-dep \
            "/first/rlock-$version"
}

# made FOLDER [VARIABLE=VALUE]...
made() {
    # shellcheck disable=SC2016
    inside maker env "${@:2}" sh -euc '
        umask "${MASK:-022}"
        cd "$1"
        DEB_BUILD_OPTIONS=parallel=$(nproc) dpkg-buildpackage -us -uc' - \
        "/$1/rlock-$version" &&
        rm -rf "${at:?}/$1" && mkdir -p "$at/$1" &&
        cp "$at/maker/$1"/*.deb "$at/$1"
}

# Six packages; and the releases differ in what they take for the current standard.
is_clean() {
    # shellcheck disable=SC2016
    inside maker sh -euc 'cd /first
        [ "$(ls ./*.deb | wc -l)" = 6 ]
        lintian --allow-root --display-info --pedantic \
            --suppress-tags out-of-date-standards-version,newer-standards-version \
            --fail-on error,warning,info,pedantic ./*.changes' &&
        ! grep '^[EWIP]:' "$at/log"
}

same_again() {
    $sudo mkdir -p "$at/maker/again/in/another/folder" &&
        $sudo cp -R "$at/source/." "$at/maker/again/in/another/folder" &&
        made again/in/another/folder TZ=Asia/Tokyo LC_ALL=C.UTF-8 MASK=027 ||
        return 1
    local file
    for file in "$at"/first/*.deb; do
        cmp "$file" "$at/again/in/another/folder/$(basename "$file")" || return 1
    done
}

# --- Using them -------------------------------------------------------------

files_of() {
    inside "$1" find / -xdev \( -path /proc -o -path /dev -o -path /packages -o \
        -path /var/cache/apt -o -path /tmp \) -prune -o -name '*rlock*' -print
}

installed() {
    copy_of_bare user && files_of user >"$at/before" &&
        $sudo cp -R "$at/first" "$at/user/packages" || return 1
    # The command and what it needs, and nothing of the others.
    inside user sh -c 'apt-get -qy --no-install-recommends install \
        /packages/rlock_*.deb /packages/librlock0*_*.deb' &&
        inside user rlock --version | grep -x "rlock $version" || return 1
    inside user sh -c 'apt-get -qy --no-install-recommends install \
        /packages/librlock*_*.deb /packages/python3-rlock_*.deb \
        gcc libc6-dev pkg-config redis-server' &&
        diff -r examples "$at/user/usr/share/doc/rlock/examples"
}

# at_a_server COMMANDS: the server ends with their shell, as that is the first process of
# its namespace.
at_a_server() {
    # shellcheck disable=SC2016
    inside user sh -euc '
        redis-server --daemonize yes --save "" >/dev/null
        for i in 1 2 3 4 5 6 7 8 9 10; do
            ! redis-cli ping >/dev/null 2>&1 || break
            sleep 1
        done
        eval "$1"' - "$1"
}

program_locks() {
    $sudo tee "$at/user/tmp/program.c" >"$at/program.c" <<'END'
#include <rlock/rlock.h>
#include <stdio.h>
int main(void)
{
    rlock_client *cl;
    rlock *lk;
    if (rlock_client_new(NULL, &cl) != RLOCK_OK ||
        rlock_new(cl, "job", &lk) != RLOCK_OK || rlock_trylock(lk) != RLOCK_OK)
        return fprintf(stderr, "%s\n", rlock_last_error()->message), 1;
    return printf("%d\n", rlock_hold_count(lk)) < 0;
}
END
    # shellcheck disable=SC2016
    at_a_server '
        cc -Wall -Werror -o /tmp/program /tmp/program.c \
            $(pkg-config --cflags --libs rlock)
        [ "$(/tmp/program)" = 1 ]
        status=0
        rlock run -n job true || status=$?
        [ "$status" = 124 ]
        [ "$(rlock run -n other -c "rlock who other")" ]
        rlock ls | grep job
        rlock doctor >/dev/null || [ $? -le 2 ]'
}

# Python has the lock, and to the command it is held; the module is one that pip
# knows, and its manual is there.
python_locks() {
    $sudo tee "$at/user/tmp/program.py" >"$at/program.py" <<'END'
import subprocess
from importlib import metadata

import rlock

assert rlock.__file__.startswith("/usr/lib/python3/dist-packages/")
assert metadata.version("rlock") == rlock.__version__ == rlock.library_version()
with rlock.Client() as client, client.lock("python", timeout=5) as lock:
    assert lock.held and lock.token > 0
    assert subprocess.run(["rlock", "who", "python"]).returncode == 0
assert subprocess.run(["rlock", "who", "python"]).returncode == 1
END
    # shellcheck disable=SC2016
    at_a_server '
        python3 -W error /tmp/program.py
        [ -e /usr/share/doc/python3-rlock/README.md ]
        python3 -c "help(\"rlock\")" | grep -q RedLock'
}

has_all_parts() {
    inside user sh -euc '
        cd /usr/share
        ls man/man1/rlock.1.gz man/man3/rlock.3.gz rlock/lua/hash/acquire.lua \
            doc/rlock/src/doc/locks.md doc/rlock/examples/basic.c \
            bash-completion/completions/rlock zsh/vendor-completions/_rlock \
            fish/vendor_completions.d/rlock.fish
        zcat man/man3/rlock_unlock_start.3.gz | grep -q "^\.Nm rlock_acquire_start"
        readelf -n /usr/lib/*/librlock.so.0.3 | grep -q "Provider: rlock"
        ! readelf -d /usr/bin/rlock 2>/dev/null | grep -i runpath
        [ -z "$(find / -xdev -xtype l -path "*rlock*")" ]'
}

purged() {
    inside user sh -c 'apt-get -qy purge rlock python3-rlock "librlock*" &&
        ldconfig' &&
        files_of user >"$at/after" &&
        diff "$at/before" "$at/after"
}

# ----------------------------------------------------------------------------

tests/deps.sh deb
[ $# -gt 0 ] || set -- bookworm trixie
for release in "$@"; do
    at=$build/$release
    mkdir -p "$at"
    check 'there is a bare system' bare
    check 'nothing is needed but what the packages say' needs_what_it_says
    check 'the packages are made' made first
    check 'lintian has nothing to say' is_clean
    check 'made again, they are the same' same_again
    check 'they are installed' installed
    check 'a program that was built with them locks' program_locks
    check 'the Python module locks' python_locks
    check 'manuals, documents, scripts and completion are there' has_all_parts
    check 'purged, they leave nothing' purged
done

trap - EXIT
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
