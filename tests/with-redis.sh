#!/bin/sh
# with-redis.sh COMMAND [ARGUMENT]...
#
# Runs the command with one argument more: the URI of a Redis server of its
# own, on a Unix socket in a new directory. Both are gone afterwards.
#
#   RLOCK_PORT   a port of 127.0.0.1 where it listens, too; none
set -eu

dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
redis=
finish() {
    if [ -n "$redis" ]; then
        kill "$redis" 2>/dev/null || :
        wait "$redis" || :
    fi
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' HUP INT TERM

# Should this script be killed, the kernel stops the server.
setpriv --pdeathsig KILL redis-server --port "${RLOCK_PORT:-0}" \
    --bind 127.0.0.1 --unixsocket "$dir/redis.sock" \
    --save '' --appendonly no --dir "$dir" >"$dir/log" 2>&1 &
redis=$!
tries=100
until redis-cli -s "$dir/redis.sock" ping >/dev/null 2>&1; do
    tries=$((tries - 1))
    if [ "$tries" = 0 ] || ! kill -0 "$redis" 2>/dev/null; then
        echo "with-redis.sh: redis-server does not start:" >&2
        cat "$dir/log" >&2
        exit 1
    fi
    sleep 0.05
done

"$@" "unix://$dir/redis.sock"
