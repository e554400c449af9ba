#!/bin/sh
# Shows rlock at work, from a fresh clone on: installs what is missing, builds
# into build/, and runs three examples one after the other, each with a Redis
# server of its own that is gone afterwards. Asks nothing.
set -eu

cd "$(dirname "$0")/.."
exec </dev/null
# Taken when the step now running is over, and with it its server.
trap 'exit 143' HUP INT TERM

# show EXAMPLE WHAT-TO-LOOK-FOR
show() {
    printf '\n==== %s ====\n%s\n\n' "$1" "$2"
    tests/with-redis.sh "build/examples/$1"
}

echo "Looking for what is needed, and building into build/ ..."
tests/deps.sh demo
cmake -S . -B build -DRLOCK_BUILD_EXAMPLES=ON >/dev/null
cmake --build build -j "$(nproc)" \
    --target example_nested example_threads example_watchdog >/dev/null

show nested "\
Two processes, two threads each. close_account() locks and calls pay_out(),
which locks and calls write_entry(), which locks: always the same lock.
Each line is what HGETALL says of the lock in Redis at that level,
    host:pid:thread:uuid of the hold -> how many times it is locked,
and the fencing token, which only grows from hold to hold. While one thread
goes from 1 to 3 and back, the other three wait."

show threads "\
Eight threads add to one variable that nothing guards but the lock. Each line
is written under the lock and ends with what HGETALL says of it."

show watchdog "\
A job of three seconds under a lock with a lease of one: watch the TTL."

printf '\nThe demo is over; nothing is left running.\n'
