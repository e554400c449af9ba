#!/usr/bin/env bash
# alerts.sh rules|names|scraped [COMMAND]
#
# Looks at examples/alerts.yml and examples/grafana.json:
#
#   rules    promtool understands the rules, and they fire when they should
#   names    each figure that they speak of is one that rlock_metrics_write() or
#            rlock exporter tells, and the dashboard is JSON
#   scraped  a Prometheus that scrapes COMMAND exporter at a server knows its
#            figures, and that the server is gone, by the rule for that
set -eu -o pipefail

cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/rlock.XXXXXX")
pids=()
cleanup() {
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || :
        wait "$pid" 2>/dev/null || :
    done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 143' HUP INT TERM

# Where a program is not there the test is skipped.
needs() {
    for program; do
        command -v "$program" >/dev/null || {
            echo "there is no $program"
            exit 77
        }
    done
}

rules() {
    needs promtool
    cp examples/alerts.yml tests/alerts/rules.yml "$work"
    (cd "$work" && promtool check rules alerts.yml &&
        promtool test rules rules.yml)
}

# A family of the manual has _total behind it in the text if it only grows.
told() {
    sed -n 's/^| `\(rlock_[a-z_]*\)`.*/\1/p' src/doc/metrics.md |
        sed 'p; s/$/_total/; p; s/_total$/_bucket/'
    grep -o '{"rlock_[a-z_]*"' src/cli/exporter.c | tr -d '{"'
}

names() {
    needs python3
    told | sort -u >"$work/told"
    grep -ohE '\brlock_[a-z_]+' examples/alerts.yml examples/grafana.json |
        grep -v -x rlock_metrics_write | sort -u >"$work/named"
    [ -s "$work/told" ] && [ -s "$work/named" ]
    if comm -23 "$work/named" "$work/told" | grep .; then
        echo "nobody tells of these"
        exit 1
    fi
    python3 -m json.tool examples/grafana.json >"$work/parsed"
}

# Until the query has a result that has this in it.
until_says() { # QUERY WORDS
    for _ in $(seq 600); do
        if curl -s -G --data-urlencode "query=$1" \
            "http://127.0.0.1:$port/api/v1/query" | grep -q -e "$2"; then
            return
        fi
        sleep 0.1
    done
    echo "within 60 s $1 does not say $2"
    cat "$work/prometheus.log"
    exit 1
}

scraped() { # COMMAND
    needs prometheus redis-server curl
    # Below those that the kernel gives to whoever connects.
    port=$((12000 + $$ % 10000))
    from=$((port + 10000))
    sed 's/for: 1m/for: 0s/' examples/alerts.yml >"$work/alerts.yml"
    cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: servers
    static_configs: [{targets: ["127.0.0.1:$from"]}]
END
    redis-server --port 0 --unixsocket "$work/sock" --save '' >/dev/null &
    server=$!
    pids+=($!)
    "$1" -u "unix://$work/sock" exporter --listen "127.0.0.1:$from" &
    pids+=($!)
    prometheus --config.file="$work/prometheus.yml" \
        --storage.tsdb.path="$work/data" \
        --web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &
    pids+=($!)
    until_says rlock_up '"1"'
    RLOCK_URI=unix://$work/sock "$1" run job sleep 60 &
    pids+=($!)
    until_says rlock_server_held '"1"'
    kill "$server"
    until_says rlock_up '"0"'
    until_says 'ALERTS{alertname="RlockDown",alertstate="firing"}' '"1"'
}

"$@"
