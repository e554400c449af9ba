#!/bin/sh
# Shows rlock at work, from a fresh clone on: installs what is missing, builds
# into build/, and runs five examples one after the other, each with Redis
# servers of its own that are gone afterwards. Asks nothing.
set -eu

cd "$(dirname "$0")/.."
exec </dev/null
# Taken when the step now running is over, and with it its server.
trap 'exit 143' HUP INT TERM

# show EXAMPLE WHAT-TO-LOOK-FOR COMMAND [ARGUMENT]...
show() {
    printf '\n==== %s ====\n%s\n\n' "$1" "$2"
    shift 2
    "$@"
}

echo "Looking for what is needed ..."
tests/deps.sh demo
echo "Building into build/, half a minute or so; the compiler's words: build/demo.log"
tests/progress.sh configured build/demo.log \
    cmake -S . -B build -DRLOCK_BUILD_EXAMPLES=ON
tests/progress.sh built build/demo.log cmake --build build -j "$(nproc)" \
    --target example_nested example_threads example_watchdog \
    example_multi_transfer example_redlock

show nested "\
Two processes, two threads each. close_account() locks and calls pay_out(),
which locks and calls write_entry(), which locks: always the same lock.
Each line is what HGETALL says of the lock in Redis at that level,
    host:pid:thread:uuid of the hold -> how many times it is locked,
and the fencing token, which only grows from hold to hold. While one thread
goes from 1 to 3 and back, the other three wait." \
    tests/with-redis.sh build/examples/nested

show threads "\
Eight threads add to one variable that nothing guards but the lock. Each line
is written under the lock and ends with what HGETALL says of it." \
    tests/with-redis.sh build/examples/threads

show watchdog "\
A job of three seconds under a lock with a lease of one: watch the TTL." \
    tests/with-redis.sh build/examples/watchdog

show multi_transfer "\
Two accounts on two servers, and threads that move money both ways, each under
a lock of both accounts. Whoever looks under that lock, finds all the money." \
    tests/with-redis.sh tests/with-redis.sh build/examples/multi_transfer

show redlock "\
A lock on five servers. Two are killed under it, and it stays; with a third one
the majority is gone, and the program is told before its lease has run out. At
the right is what is left of the lease on each server: watch it being renewed." \
    env BUILD_DIR=build examples/redlock.sh

printf '\nThe demo is over; nothing is left running.\n'
