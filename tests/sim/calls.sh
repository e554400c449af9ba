#!/bin/sh
# calls.sh WORLD-OBJECTS-DIR
#
# Does the program of tests/sim call every public function, and set every option of
# clients and locks? Each that it does not has to stand in calls.left, with a reason;
# one that stands there and is called, or set, has to go from there. Closes with
# "N passed, N failed".
set -eu

cd "$(dirname "$0")/../.."
passed=0 failed=0
trap 'rm -rf "$tmp"' EXIT
tmp=$(mktemp -d)

cat include/rlock/*.h | tr '\n' ' ' | sed 's/RLOCK_API/\n&/g' |
    sed -n 's/^RLOCK_API[^(;]*[ *]\(rlock_[a-z_]*\)(.*/\1/p' |
    sort -u >"$tmp/public"
find "$1" -name '*.o' -exec nm -u {} + | sed -n 's/^ *U \(rlock_[a-z_]*\)$/\1/p' |
    sort -u >"$tmp/called"

# The members of rlock_options, rlock_lock_options and rlock_red_options.
${CC:-cc} -fpreprocessed -dD -E -P include/rlock/options.h include/rlock/lock.h \
    include/rlock/multi.h 2>/dev/null |
    awk '
        /^typedef struct rlock_(lock_|red_)?options \{/ { on = 1; next }
        on && /^\}/ { on = 0 }
        on { print }' |
    sed 's/(\*\([a-z_]*\))(.*/\1;/; s/,/;/g' | tr ';' '\n' |
    sed -n 's/.*[ *]\([a-z_][a-z_]*\)$/\1/p' | grep -vx size |
    sed 's/^/./' | sort -u >"$tmp/options"
cat tests/sim/*.c | sed -n 's/^.*o\(\.\|->\)\([a-z_]*\) = .*/.\2/p' |
    sort -u >"$tmp/set"
cat "$tmp/options" >>"$tmp/public"
cat "$tmp/set" >>"$tmp/called"
sed -n 's/^\([.a-z_]*\) .*/\1/p' tests/sim/calls.left | sort -u >"$tmp/left"

while read -r name; do
    if grep -qx "$name" "$tmp/called"; then
        if grep -qx "$name" "$tmp/left"; then
            echo "not ok - $name is used, and stands in calls.left"
            failed=$((failed + 1))
            continue
        fi
        passed=$((passed + 1))
    elif grep -qx "$name" "$tmp/left"; then
        echo "never used - $name: $(sed -n "s/^$name //p" tests/sim/calls.left)"
    else
        echo "not ok - $name is never used, and calls.left does not say why"
        failed=$((failed + 1))
    fi
done <"$tmp/public"
[ "$passed" -gt 0 ] || failed=$((failed + 1))

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
