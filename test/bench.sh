#!/usr/bin/env bash
# Whole-process figures for test/lab/studies.md, on the real engine:
#   - carma run against docker run of the same image that does nothing, in turn;
#   - CPU and memory of an idle daemon on a simulated server.
# Usage: test/bench.sh [RUNS [IDLE_SECONDS]], after make build image.
set -euo pipefail
runs=${1:-31} idle=${2:-60}
cd "$(dirname "$0")/.."
PATH=$PWD/bin:$PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/carma-bench.XXXXXX")
export CARMA_SOCKET=$work/s CARMA_DATA_DIR=$work/data
image=carma/noop:bench

mkdir "$work/context"
cat >"$work/context/main.go" <<'GO'
package main

func main() {}
GO
printf 'FROM scratch\nCOPY noop /noop\nENTRYPOINT ["/noop"]\n' >"$work/context/Dockerfile"
CGO_ENABLED=0 go build -o "$work/context/noop" "$work/context/main.go"
DOCKER_BUILDKIT=0 docker build -q -t "$image" "$work/context" >/dev/null

carma daemon --gpus sim:dgx-station-a100 >"$work/log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null; docker rmi -f $image >/dev/null 2>&1; rm -rf "$work"' EXIT
until carma gpus >/dev/null 2>&1; do sleep 0.1; done

now() { date +%s%N; }
once() { # once COMMAND...: milliseconds
	local began
	began=$(now)
	"$@" >/dev/null
	echo $((($(now) - began) / 1000))
}
for _ in 1 2 3; do docker run --rm "$image" && carma run --exclusive "$image"; done
for i in $(seq "$runs"); do
	# The GPU of the last task needs no warm-up time: it is idle again.
	echo "$(once docker run "$image") $(once carma run "$image") $i"
done >"$work/pairs"
docker ps -aq --filter "ancestor=$image" | xargs -r docker rm >/dev/null

awk '{ print $1/1000, $2/1000, $2/$1 }' "$work/pairs" >"$work/ratios"
column_median() { sort -n -k"$1,$1" "$work/ratios" | awk -v c="$1" '{ v[NR] = $c } END { print v[1], v[int((NR+1)/2)], v[NR] }'; }
echo "$runs pairs, milliseconds: least, median, most"
echo "docker run        $(column_median 1)"
echo "carma run         $(column_median 2)"
echo "carma / docker    $(column_median 3)"

ticks() { awk '{ print $14 + $15 }' "/proc/$daemon/stat"; }
began=$(ticks)
sleep "$idle"
used=$(($(ticks) - began))
echo "idle daemon over $idle s: CPU $(awk -v u="$used" -v i="$idle" -v h="$(getconf CLK_TCK)" 'BEGIN { printf "%.2f", 100 * u / h / i }') %, memory (RSS) $(awk '/VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$daemon/status") MiB"
