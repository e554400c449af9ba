#!/bin/sh
# run.sh BUILD PREFIX
#
# Installs the library that BUILD holds under PREFIX, and builds and runs
# programs against that copy: found by CMake and by pkg-config, shared and
# static, as C99, C11 and C++11.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
tests=${here%/*}
root=${tests%/*}
build=$1 prefix=$2
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
}

exports() {
    # A is the version itself.
    nm -D --defined-only "$lib/librlock.so" |
        awk '$2 != "A" && $3 !~ /^rlock_/ { print; bad = 1 }
             { n++ } END { exit bad || n < 2 }' || return 1
    # A static library cannot hide what its parts share; it can be polite.
    nm -g --defined-only "$lib/librlock.a" |
        awk 'NF == 3 && $3 !~ /^(rlock|rl)_/ { print; bad = 1 }
             END { exit bad }'
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

rm -rf "$prefix"
mkdir -p "$prefix/build/pc"
cmake --install "$build" --prefix "$prefix" >"$prefix/log"
pc=$(find "$prefix" -name rlock.pc)
lib=${pc%/pkgconfig/rlock.pc}
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"

check 'headers stand alone' headers
check 'only rlock_ is exported' exports
check 'find_package builds' project "$here" cmake
check 'the examples build outside the tree' project "$root/examples" examples
for library in rlock rlock_static; do
    for language in c99 c11 cxx11; do
        case $language in
        cxx11) set -- "$cxx" -std=c++11 "$here/consumer.cpp" ;;
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

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
