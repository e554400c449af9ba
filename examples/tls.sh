#!/usr/bin/env bash
# tls.sh: a lock over TLS, and the servers that are refused.
#
# Makes an authority and certificates, starts a Redis server of its own that
# listens for TLS only and wants a client's certificate, and runs the program
# tls: with everything right, under a name that the certificate does not have,
# trusting somebody else, and without a certificate of its own. Ends with status
# 0 only if the first one locked and the others were refused.
#
#   BUILD_DIR   a build to use as it is; without it, installs what is missing
#               and builds into build/
set -eu -o pipefail

cd "$(dirname "$0")/.."
exec </dev/null

server=''
dir=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
finish() {
    if [ -n "$server" ]; then
        kill -KILL "$server" 2>/dev/null || :
        wait "$server" 2>/dev/null || :
    fi
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' HUP INT TERM

die() {
    printf 'tls.sh: %s\n' "$1" >&2
    exit 1
}

if [ -z "${BUILD_DIR-}" ]; then
    BUILD_DIR=build
    tests/deps.sh demo
    cmake -S . -B build -DRLOCK_BUILD_EXAMPLES=ON >/dev/null
    cmake --build build -j "$(nproc)" --target example_tls >/dev/null
fi

# authority NAME; certificate NAME AUTHORITY WHOSE
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -days 2 -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1" 2>/dev/null
}
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
    printf 'subjectAltName=%s\n' "$3" >"$dir/names"
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/$2" -CAkey "$dir/$2.key" \
        -CAcreateserial -days 2 -extfile "$dir/names" -out "$dir/$1" 2>/dev/null
}
authority ours
authority theirs
certificate server ours DNS:localhost
certificate client ours DNS:client

# Another program may take the port first; then it is another one.
answers() {
    redis-cli -s "$dir/sock" ping >/dev/null 2>&1
}
for tries in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 12000))
    setpriv --pdeathsig KILL redis-server --port 0 --tls-port "$port" \
        --bind 127.0.0.1 --unixsocket "$dir/sock" --save '' --appendonly no \
        --dir "$dir" --tls-cert-file "$dir/server" \
        --tls-key-file "$dir/server.key" --tls-ca-cert-file "$dir/ours" \
        --tls-protocols TLSv1.3 >"$dir/log" 2>&1 &
    server=$!
    limit=$((SECONDS + 10))
    until answers || ! kill -0 "$server" 2>/dev/null; do
        ((SECONDS < limit)) || die "the server does not answer"
        sleep 0.02
    done
    answers && break
    ((tries < 5)) || die "no server: $(tail -n 1 "$dir/log")"
done

# expect STATUS WHAT ARGUMENT...
expect() {
    local wanted=$1 status=0
    printf -- '---- %s\n' "$2"
    shift 2
    "$BUILD_DIR/examples/tls" "$@" || status=$?
    ((status == wanted)) || die "it ended with status $status"
}
ours=("$dir/ours" "$dir/client" "$dir/client.key")
expect 0 "everything is right" "rediss://localhost:$port" "${ours[@]}"
expect 2 "the certificate is for localhost, not for its address" \
    "rediss://127.0.0.1:$port" "${ours[@]}"
expect 2 "an authority that has not signed it" \
    "rediss://localhost:$port" "$dir/theirs" "$dir/client" "$dir/client.key"
expect 2 "the client has no certificate" \
    "rediss://localhost:$port" "$dir/ours"
