#!/bin/sh
# run.sh BUILD
#
# Installs the library that BUILD holds in a folder of its own, which is not in
# the source (CMake refuses to export such paths) and is taken away again, and
# builds and runs programs against that copy: found by CMake and by pkg-config,
# shared and static, as C99, C11, C++11 and C++17; also those that documents show.
# Then the other ways to have it: as one file, as a part of another project, as
# one kind of library at absolute paths; taken away again; beside a second
# hiredis; cross-built.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
tests=${here%/*}
root=${tests%/*}
build=$(realpath "$1")
prefix=$(realpath "$(mktemp -d)")
trap 'rm -rf "$prefix"' EXIT
trap 'exit 143' HUP INT TERM
cc=${CC:-cc} cxx=${CXX:-c++}
strict='-Wall -Wextra -Wpedantic -Werror'
passed=0 failed=0

check() {
    name=$1
    shift
    if "$@" >"$prefix/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok - $name"
    else
        failed=$((failed + 1))
        echo "not ok - $name"
        cat "$prefix/log"
    fi
}

headers() {
    flags="$strict $(pkg-config --cflags rlock) -fsyntax-only"
    for header in "$prefix"/include/rlock/*.h; do
        "$cc" -std=c99 $flags -x c "$header" &&
            "$cc" -std=c11 $flags -x c "$header" &&
            "$cxx" -std=c++11 $flags -x c++ "$header" || return 1
    done
    for header in "$prefix"/include/rlock/*.hpp; do
        for standard in 17 20; do
            "$cxx" -std=c++$standard $flags -x c++ "$header" &&
                "$cxx" -std=c++$standard -fno-exceptions $flags \
                    -x c++ "$header" || return 1
        done
    done
}

# What a strict C++ program would be warned of in a macro of ours.
no_null_by_zero() {
    for compiler in g++ clang++; do
        if command -v "$compiler" >/dev/null; then
            for file in consumer.cpp consumer17.cpp; do
                "$compiler" -std=c++17 $strict \
                    -Wzero-as-null-pointer-constant \
                    $(pkg-config --cflags rlock) -fsyntax-only \
                    "$here/$file" || return 1
            done
        fi
    done
}

exports() {
    # A is the version itself.
    nm -D --defined-only "$lib/librlock.so" |
        awk '$2 != "A" && $3 !~ /^rlock_/ { print; bad = 1 }
             { n++ } END { exit bad || n < 2 }' || return 1
    nm -g --defined-only "$lib/librlock.a" |
        awk 'NF == 3 && $3 !~ /^rlock_/ { print; bad = 1 }
             NF == 3 { n++ } END { exit bad || n < 2 }'
}

# What src/packaging/debian says in words of its own.
packages_agree() {
    debian=$root/src/packaging/debian
    soname=$(objdump -p "$lib/librlock.so" | awk '$1 == "SONAME" { print $2 }')
    package=librlock${soname#librlock.so.}
    nm -D --defined-only "$lib/librlock.so" |
        awk '{ sub(/@.*/, "", $3); print $3 }' | sort >"$prefix/has"
    sed -n 's/^ \([^@]*\)@.*/\1/p' "$debian/$package.symbols" | sort >"$prefix/lists"
    diff "$prefix/has" "$prefix/lists" &&
        grep -x "$soname $package #MINVER#" "$debian/$package.symbols" &&
        grep -x "Package: $package" "$debian/control" &&
        sed 1q "$debian/changelog" | grep "^rlock ($(pkg-config --modversion rlock)-"
}

project() {
    cmake -S "$1" -B "$prefix/build/$2" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$prefix/build/$2"
}

# compile OUTPUT LIBRARY COMPILER...; with pkg-config
compile() {
    output=$1 library=$2
    shift 2
    flags=$(pkg-config --cflags rlock)
    if [ "$library" = rlock ]; then
        libs=$(pkg-config --libs rlock)
    else
        libs=$(pkg-config --static --libs rlock |
            sed 's/-lrlock/-l:librlock.a/')
    fi
    "$@" $strict $flags -o "$output" $libs
}

# programs FOLDER FILE; the programs in a Markdown file, as they stand there
programs() {
    mkdir -p "$1"
    awk -v folder="$1" '
        /^```c(pp)?$/ { text = ""; inside = substr($0, 4); next }
        /^```/        { if (inside != "" && text ~ /int main\(/)
                            printf "%s", text >(folder "/" ++n[inside] "." inside)
                        inside = "" }
        inside != ""  { text = text $0 "\n" }
        END           { exit !n["c"] }' "$2"
}

# Such a program looks for its server at the port that everybody's has: it gets
# a network of its own where that is allowed.
alone() {
    alone='ip link set lo up && exec "$@"'
    if unshare -rn sh -c "$alone" sh true; then
        unshare -rn sh -c "$alone" sh "$@"
    else
        "$@"
    fi
}

# docs_run FILE NUMBER SAYS; how many programs it has, and what each prints
docs_run() {
    docs=$prefix/docs
    rm -rf "$docs"
    programs "$docs" "$root/$1" || return 1
    [ "$(ls "$docs" | wc -l)" -eq "$2" ] || return 1
    says=$3
    for program in "$docs"/*; do
        case $program in
        *.c) set -- "$cc" ;;
        *) set -- "$cxx" -std=c++17 ;;
        esac
        compile "$docs/program" rlock "$@" "$program" &&
            RLOCK_PORT=6379 alone "$tests/with-redis.sh" "$docs/program" \
                >"$docs/says" || return 1
        grep -x "$says" "$docs/says" || return 1
    done
}

# Each awk that is here makes the one file, and the manual as it was installed.
any_awk_will_do() {
    cmake=$root/src/cmake
    for awk in mawk gawk original-awk 'busybox awk'; do
        command -v "${awk%% *}" || continue
        rm -rf "$prefix/awk"
        mkdir -p "$prefix/awk/man3"
        LC_ALL=C $awk -v output="$prefix/awk/man3" \
            -v date="$(sed -n 's/^\.Dd //p' "$root/src/doc/rlock.1")" \
            -f "$cmake/manual-headers.awk" -f "$cmake/manual.awk" \
            "$root"/include/rlock/*.h &&
            diff -r "$prefix/share/man/man3" "$prefix/awk/man3" &&
            LC_ALL=C $awk -v version=0 -v output="$prefix/awk/one.c" \
                -v path="$root/src" -f "$cmake/amalgamate.awk" "$root/LICENSE" \
                "$root/src/base/error.c" &&
            [ -s "$prefix/awk/one.c" ] || return 1
    done
}

# Wherever the tree lies, and without a list of the loader's.
command_runs() (
    unset LD_LIBRARY_PATH
    mkdir -p "$prefix/moved"
    cp -R "$prefix/bin" "$prefix"/lib* "$prefix/moved"
    [ "$("$prefix/moved/bin/rlock" --version)" = "rlock $(pkg-config \
        --modversion rlock)" ] &&
        "$tests/with-redis.sh" sh -c '"$0" -u "$1" run -n job true' \
            "$prefix/moved/bin/rlock" || exit 1
    rm -rf "$prefix/moved"
)

# A program that links the shared library needs neither hiredis nor libuuid.
needs_no_other_pc() {
    flags=$(PKG_CONFIG_LIBDIR="$lib/pkgconfig" PKG_CONFIG_PATH='' \
        pkg-config --cflags --libs rlock) || return 1
    echo "$flags"
    case $flags in
    *hiredis* | *uuid*) return 1 ;;
    esac
}

# amalgamated COMPILER
# It says itself what it is to be linked with.
amalgamated() {
    one=$build/amalgamation
    cmake --build "$build" --target amalgamation &&
        "$1" -c -O2 $strict -I"$one" "$one/rlock.c" -o "$prefix/rlock.o" &&
        "$1" $strict -I"$one" "$here/consumer.c" "$prefix/rlock.o" \
            -o "$prefix/one" $(grep -om 1 -e '-lhiredis .*' "$one/rlock.c") &&
        "$tests/with-redis.sh" "$prefix/one"
}

# The examples' units, as if the command lay where they say.
units_are_right() {
    mkdir -p "$prefix/units"
    for unit in "$prefix"/share/doc/rlock/examples/rlock-*.service \
        "$prefix"/share/doc/rlock/examples/rlock-*.timer; do
        sed "s|/usr/bin/rlock|$prefix/bin/rlock|" "$unit" \
            >"$prefix/units/${unit##*/}" || return 1
    done
    systemd-analyze verify --man=no "$prefix"/units/* >"$prefix/units.says" 2>&1 &&
        [ ! -s "$prefix/units.says" ] || {
        cat "$prefix/units.says"
        return 1
    }
}

nothing_left() {
    stage=$prefix/stage
    DESTDIR=$stage cmake --install "$build" --prefix /usr || return 1
    [ -x "$stage/usr/bin/rlock" ] &&
        [ -e "$stage/usr/include/rlock/rlock.h" ] &&
        [ -e "$stage/usr/include/rlock/rlock.hpp" ] &&
        [ -e "$stage/usr/share/rlock/lua/hash/acquire.lua" ] &&
        [ -e "$stage/usr/share/man/man1/rlock.1" ] &&
        [ -e "$stage/usr/share/man/man3/rlock_acquire.3" ] &&
        [ -e "$stage/usr/share/doc/rlock/LICENSE" ] &&
        [ -z "$(find "$stage/usr/share/doc" -name '*.[1-9]')" ] || return 1
    DESTDIR=$stage cmake --build "$build" --target uninstall || return 1
    left=$(find "$stage" ! -type d -o -name rlock)
    echo "left: $left"
    [ -z "$left" ]
}

packed() {
    (cd "$build" && cpack -G TGZ -B "$prefix/pack") &&
        tar tf "$prefix"/pack/rlock-*.tar.gz >"$prefix/packed" &&
        grep 'include/rlock/rlock\.h$' "$prefix/packed" &&
        grep 'include/rlock/rlock\.hpp$' "$prefix/packed"
}

# ldconfig_runs UID PREFIX LIBDIR; with programs that only pretend
ldconfig_runs() {
    bin=$prefix/pretend
    mkdir -p "$bin"
    printf '#!/bin/sh\necho %s\n' "$1" >"$bin/id"
    printf '#!/bin/sh\n: >"%s/ran"\n' "$prefix" >"$bin/ldconfig"
    chmod +x "$bin/id" "$bin/ldconfig"
    rm -f "$prefix/ran"
    PATH=$bin:$PATH cmake -DCMAKE_INSTALL_PREFIX="$2" -Dlibdir="$3" \
        -P "$root/src/cmake/ldconfig.cmake"
    [ -e "$prefix/ran" ]
}
the_loader_is_told() {
    ldconfig_runs 0 /usr/local lib && ldconfig_runs 0 /usr lib/x || return 1
    ! ldconfig_runs 1000 /usr/local lib && ! ldconfig_runs 0 /opt/x lib &&
        ! (export DESTDIR=/stage && ldconfig_runs 0 /usr lib)
}

# A build of all that a program may add to its own.
part_of_another_project() {
    parent=$prefix/build/parent
    generator=
    if command -v ninja >/dev/null; then
        generator='-G Ninja'
    fi
    shelf=$(echo '#include <hiredis/hiredis.h>' | "$cc" -M -E - |
        tr ' ' '\n' | sed -n 's/\/hiredis\.h$//p')
    cmake -S "$here/parent" -B "$parent" $generator -DSHELF="$shelf" &&
        cmake --build "$parent" &&
        "$tests/with-redis.sh" "$parent/child" &&
        cmake --install "$parent" --prefix "$prefix/parent" || return 1
    find "$prefix/parent" ! -type d
    [ "$(find "$prefix/parent" ! -type d)" = "$prefix/parent/bin/child" ]
}

# one_kind ON|OFF LIBRARY; at absolute paths, as Nix and Guix have it
one_kind() {
    at=$prefix/kind-$1 other=librlock.so
    if [ "$1" = ON ]; then
        other=librlock.a
    fi
    cmake -S "$root" -B "$at/build" -G 'Unix Makefiles' \
        -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS="$1" \
        -DCMAKE_INSTALL_PREFIX="$at/out" -DCMAKE_INSTALL_LIBDIR="$at/out-lib/lib" \
        -DCMAKE_INSTALL_INCLUDEDIR="$at/out-dev/include" &&
        cmake --build "$at/build" && cmake --install "$at/build" || return 1
    # Tests, examples and benchmarks were not asked for.
    ! find "$at/build" -name tests -o -name examples | grep . || return 1
    [ -e "$at/out-lib/lib/$2" ] && [ ! -e "$at/out-lib/lib/$other" ] || return 1
    (
        export PKG_CONFIG_PATH="$at/out-lib/lib/pkgconfig"
        export LD_LIBRARY_PATH="$at/out-lib/lib"
        "$cc" $strict "$here/consumer.c" -o "$at/pc" \
            $(pkg-config --cflags --libs rlock) &&
            "$tests/with-redis.sh" "$at/pc" &&
            cmake -S "$root/examples" -B "$at/examples" \
                -Drlock_DIR="$at/out-lib/lib/cmake/rlock" &&
            cmake --build "$at/examples" --target example_basic &&
            "$tests/with-redis.sh" "$at/examples/basic"
    )
}

# As on a processor that has none of 64 bits: they are a library's.
atomics_are_a_library() {
    at=$prefix/atomics
    flag=-fno-inline-atomics
    if ! echo 'int main(void) { return 0; }' |
        "$cc" $flag -x c - -o "$prefix/atomic" 2>/dev/null; then
        echo "$cc has no $flag"
        return 0
    fi
    cmake -S "$root" -B "$at/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=$flag \
        -DCMAKE_INSTALL_PREFIX="$at/out" -DCMAKE_INSTALL_LIBDIR=lib &&
        cmake --build "$at/build" --target rlock --target rlock_static \
            --target rlock_command &&
        cmake --install "$at/build" || return 1
    (
        export PKG_CONFIG_PATH="$at/out/lib/pkgconfig"
        export LD_LIBRARY_PATH="$at/out/lib"
        for library in rlock rlock_static; do
            compile "$at/$library" "$library" "$cc" "$here/consumer.c" &&
                "$tests/with-redis.sh" "$at/$library" || return 1
        done
    )
}

# The build machine's .pc files say nothing of the machine that is built for.
cross_build_asks_no_pkg_config() {
    decoy=$prefix/decoy
    mkdir -p "$decoy"
    for dep in hiredis uuid; do
        : >"$decoy/lib$dep.so"
        printf 'Name: %s\nDescription: x\nVersion: 9\nLibs: -L%s -l%s\n' \
            "$dep" "$decoy" "$dep" >"$decoy/$dep.pc"
    done
    PKG_CONFIG_PATH=$decoy cmake -S "$root" -B "$decoy/build" \
        -DCMAKE_SYSTEM_NAME=Linux || return 1
    ! grep "_LIBRARY:.*=$decoy" "$decoy/build/CMakeCache.txt"
}

# second yes|no OPTIONS LIBRARY...; is it told that this hiredis fits?
second() {
    fits=$1 options=$2
    shift 2
    "$cc" $strict $options -I"$root/src" "$here/second/fits.c" \
        "$root/src/net/hiredis_abi.c" "$@" -o "$prefix/fits" && "$prefix/fits" "$fits"
}
other_hiredis_is_noticed() {
    own=-I$here/second theirs=-I$prefix/config
    mkdir -p "$prefix/config"
    cp "$build/generated/rlock_config.h" "$prefix/config"
    for kind in '' -DSECOND_IS_OLD; do
        "$cc" -c $kind "$own" "$here/second/hiredis.c" \
            -o "$prefix/second$kind.o" || return 1
    done
    second yes "$own" "$prefix/second.o" &&
        second yes "$own -DSECOND_IS_OLD" "$prefix/second-DSECOND_IS_OLD.o" &&
        second no "$own" "$prefix/second-DSECOND_IS_OLD.o" &&
        second no "$own -DSECOND_IS_OLD" "$prefix/second.o" &&
        second yes "$theirs" -lhiredis &&
        second no "$own $(stranger)" -lhiredis &&
        second no "$theirs" "$prefix/second$(stranger).o"
}
# The option for the kind of hiredis that this machine does not have.
stranger() {
    if grep -q 'define RL_HIREDIS_HAS_FUNCS' "$build/generated/rlock_config.h"
    then
        echo -DSECOND_IS_OLD
    fi
}
other_hiredis_is_refused() {
    "$cc" $strict $(stranger) -I"$here/second" "$here/second/program.c" \
        "$here/second/hiredis.c" $(pkg-config --cflags --libs rlock) \
        -o "$prefix/program" && "$prefix/program"
}

mkdir -p "$prefix/build/pc"
cmake --install "$build" --prefix "$prefix" >"$prefix/log"
pc=$(find "$prefix" -name rlock.pc)
lib=${pc%/pkgconfig/rlock.pc}
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"

check 'headers stand alone' headers
check 'options in C++ name no null pointer by a zero' no_null_by_zero
check 'pkg-config needs rlock.pc alone' needs_no_other_pc
check 'only rlock_ is exported' exports
check 'the Debian packages have this version and its functions' packages_agree
if command -v abidiff >/dev/null && [ "$(uname -m)" = x86_64 ]; then
    check 'what programs were compiled against is as the version says' \
        "$here/abi.sh" "$lib/librlock.so" "$root/include"
else
    echo "skipped - no abidiff, or no x86_64: the ABI"
fi
check 'find_package builds' project "$here" cmake
check 'the examples build outside the tree' project "$root/examples" examples
for library in rlock rlock_static; do
    for language in c99 c11 cxx11 cxx17; do
        case $language in
        cxx11) set -- "$cxx" -std=c++11 "$here/consumer.cpp" ;;
        cxx17) set -- "$cxx" -std=c++17 "$here/consumer17.cpp" ;;
        *) set -- "$cc" "-std=$language" "$here/consumer.c" ;;
        esac
        program=${language}_$library
        check "pkg-config builds $program" \
            compile "$prefix/build/pc/$program" "$library" "$@"
        for by in cmake pc; do
            check "$program by $by runs" \
                "$tests/with-redis.sh" "$prefix/build/$by/$program"
        done
    done
done

for file in README.md README.zh-CN.md; do
    check "the program of $file runs" \
        docs_run "$file" 1 'locked, fencing token [1-9][0-9]*'
done
check 'the programs of calls.md run, in C and C++' \
    docs_run src/doc/calls.md 2 'level 2, fencing token [1-9][0-9]*'

for compiler in gcc clang; do
    if command -v "$compiler" >/dev/null; then
        check "as one file, by $compiler" amalgamated "$compiler"
    fi
done
check 'any awk will do' any_awk_will_do
check 'the command finds its library' command_runs
check 'links between installed documents lead somewhere' \
    "$here/links.sh" "$prefix/share/doc/rlock"
check 'each function and type has a manual page' \
    "$here/manuals.sh" pages "$prefix"
if command -v mandoc >/dev/null; then
    check 'manual pages say what the headers say' \
        "$here/manuals.sh" contents "$prefix"
    check 'manual pages are without a fault' "$here/manuals.sh" lint "$prefix"
    check 'manual pages are there for a browser' "$here/manuals.sh" html "$prefix"
else
    echo "skipped - no mandoc: what the manual pages say"
fi
check 'rlock(1) tells of what the command has' \
    "$here/manuals.sh" command "$prefix"
check 'manual pages refer to pages that are there' \
    "$here/manuals.sh" links "$prefix"
check 'a function without a comment has no manual page' \
    "$here/manuals.sh" planted "$prefix"
for shell in bash zsh fish; do
    if command -v $shell >/dev/null && { [ $shell != bash ] ||
        [ -e /usr/share/bash-completion/bash_completion ]; }; then
        check "$shell completes words of the command" "$tests/with-redis.sh" \
            "$here/completion.sh" $shell "$prefix"
    else
        echo "skipped - no $shell, or no bash-completion: completion"
    fi
done
if command -v systemd-analyze >/dev/null; then
    check 'the units of systemd are right' units_are_right
else
    echo "skipped - no systemd-analyze: the units"
fi
check 'what was installed can be removed' nothing_left
check 'a package can be made' packed
check 'the loader is told of a new library' the_loader_is_told
check 'a part of another project' part_of_another_project
check 'the shared library alone, at absolute paths' one_kind ON librlock.so
check 'the static library alone, at absolute paths' one_kind OFF librlock.a
check 'where atomics of 64 bits are a library' atomics_are_a_library
check 'a cross build asks no pkg-config' cross_build_asks_no_pkg_config
check 'another hiredis is noticed' other_hiredis_is_noticed
check 'a program with another hiredis is told' other_hiredis_is_refused

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
