#!/bin/sh
# calls.sh WORLD-OBJECTS-DIR
#
# Does the program of tests/sim call every public function? Each that it does
# not call has to stand in calls.left, with a reason; one that stands there and
# is called has to go from there. Closes with "N passed, N failed".
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
sed -n 's/^\(rlock_[a-z_]*\) .*/\1/p' tests/sim/calls.left | sort -u >"$tmp/left"

while read -r name; do
    if grep -qx "$name" "$tmp/called"; then
        if grep -qx "$name" "$tmp/left"; then
            echo "not ok - $name is called, and stands in calls.left"
            failed=$((failed + 1))
            continue
        fi
        passed=$((passed + 1))
    elif grep -qx "$name" "$tmp/left"; then
        echo "never called - $name: $(sed -n "s/^$name //p" tests/sim/calls.left)"
    else
        echo "not ok - $name is never called, and calls.left does not say why"
        failed=$((failed + 1))
    fi
done <"$tmp/public"
[ "$passed" -gt 0 ] || failed=$((failed + 1))

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
