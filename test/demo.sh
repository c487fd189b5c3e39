#!/bin/sh
# A tour of carma on a simulated DGX Station (4 x A100 40 GB): a dozen training
# tasks as real containers on the real engine. `make demo` builds what it needs
# and calls it. It has its own daemon, socket and data folder, and leaves
# nothing running.
set -eu

speed=${DEMO_SPEED:-600}
bin=$(cd "$(dirname "$0")/../bin" && pwd)
PATH=$bin:$PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/carma-demo.XXXXXX")
export CARMA_SOCKET="$work/carma.sock" CARMA_DATA_DIR="$work/data"
image=carma/simtask:latest
daemon=

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

clean_up() {
	code=$?
	trap - EXIT INT TERM
	if [ -n "$daemon" ]; then
		ids=$(carma ps -q 2>/dev/null || true)
		# shellcheck disable=SC2086 # a list of numbers
		[ -z "$ids" ] || carma stop -t 1 $ids >/dev/null 2>&1 || true
		# shellcheck disable=SC2086
		[ -z "$ids" ] || carma wait $ids >/dev/null 2>&1 || true
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	if [ "$code" -ne 0 ] && [ -f "$work/daemon.log" ]; then
		echo "demo: failed; the daemon's last words:" >&2
		tail -n 20 "$work/daemon.log" >&2
	fi
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "Starting the daemon on a simulated server, $speed times faster than the clock"
carma daemon --gpus sim:dgx-station-a100 --speed "$speed" --policy magm --web 127.0.0.1:0 >"$work/daemon.log" 2>&1 &
daemon=$!
tries=0
until carma gpus >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ] || ! kill -0 "$daemon" 2>/dev/null; then
		echo "demo: the daemon did not start" >&2
		exit 1
	fi
	sleep 0.1
done

say "Submitting twelve tasks"
tasks=0
submit() {
	printf '$ carma run -d %s\n' "$*"
	carma run -d "$@" >/dev/null
	tasks=$((tasks + 1))
}
# A workload of the catalogue. Its name is used for the estimate and as the task's argument.
workload() {
	name=$1
	shift
	submit --name "$name" --est-model "$name" "$@" "$image" "$name"
}
workload maskrcnn-coco-bs8 # 28 GiB, two hours
workload gpt2-large-wikitext2-bs8-2gpu --gpus 2
workload vgg16-imagenet-bs128
# It needs 28 GiB. Beside any of the three above it runs out of memory, or is stopped
# before: when it uses memory that is booked for a growing neighbour.
submit --name under-declared --mem 4G "$image" maskrcnn-coco-bs8 --time 20m
submit --name program-bug --est-model resnet50 --batch-size 32 "$image" resnet50-imagenet-bs32 --fail-at 40%
workload efficientnet-b0-imagenet-bs64
workload mobilenet-v2-imagenet-bs64
workload resnet50-imagenet-bs64
workload resnet18-cifar100-bs64-50e
workload mobilenet-v3-small-cifar100-bs128-50e
workload efficientnet-b0-cifar100-bs128-50e
workload mnist-cnn-bs64-14e --priority high

say "All this in a browser, while the demo runs"
show carma web --print

say "What runs, what waits"
# When the first tasks train, the reasons are about memory and activity.
tries=0
while [ "$tries" -lt 40 ] && ! carma logs under-declared 2>/dev/null | grep -q 'out of memory'; do
	tries=$((tries + 1))
	sleep 0.1
done
show carma ps
show carma gpus
waits=under-declared
for id in $(carma ps -q | sort -rn); do
	if carma why "$id" 2>/dev/null | grep -q ' memory '; then waits=$id; fi
done
say "Why a task waits, GPU by GPU"
show carma why "$waits"

say "Waiting for all of them"
# shellcheck disable=SC2046 # a list of numbers
carma wait $(carma ps -a -q | sort -n) >/dev/null 2>&1 || true
show carma ps -a

say "The task that asked for too little, attempt by attempt"
show carma why under-declared
say "The task with a bug was not taken for an out-of-memory and not run again"
show carma why program-bug

succeeded=0 bug=0 recovered=0 other=0
for id in $(carma ps -a -q); do
	carma inspect "$id" >"$work/task.json"
	if grep -q '^ *"phase": "succeeded"' "$work/task.json"; then
		succeeded=$((succeeded + 1))
		if grep -Eq '^ *"outcome": "(gpu-oom|stopped)"' "$work/task.json"; then recovered=$((recovered + 1)); fi
	elif grep -q '^ *"name": "program-bug"' "$work/task.json" && grep -q '^ *"outcome": "program"' "$work/task.json"; then
		bug=$((bug + 1))
	else
		other=$((other + 1))
	fi
done
lost=$((tasks - succeeded - bug - other))
if [ "$other" -ne 0 ]; then echo "demo: $other tasks failed that should not have" >&2; fi
echo
echo "demo: $tasks tasks, $succeeded succeeded, $bug failed as expected, $recovered recovered after taking more memory than it asked for, $lost lost"
[ "$lost" -eq 0 ] && [ "$other" -eq 0 ] && [ "$bug" -eq 1 ] && [ "$recovered" -ge 1 ]
