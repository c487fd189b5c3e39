#!/usr/bin/env bash
# Runs the README's own commands from a fresh clone of this commit, as they stand there,
# and prints the seconds of each: the demo, Quick start by hand, First tasks. The image
# my-image:1 and the conda environment exp of First tasks are made here: the first is
# carma/simtask with a workload, the second a folder with this machine's Python.
# COLD=1: with an empty build cache; Go's modules are taken as they are.
# Usage: make time-readme
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$HOME/.cache"
work=$(mktemp -d "$HOME/.cache/carma-readme.XXXXXX") # tasks without an image see the home
export CARMA_CONFIG=/dev/null
[ -z "${COLD:-}" ] || export GOCACHE=$work/gocache
docker=$("$top/test/setup/engine.sh" cli)

clean_up() {
	code=$?
	trap - EXIT INT TERM
	stop_daemon
	"$docker" rmi -f my-image:1 >/dev/null 2>&1 || true
	chmod -R u+w "$work" && rm -rf "$work"
	exit "$code"
}
stop_daemon() {
	[ -n "${daemon:-}" ] || return 0
	bin/carma stop --all --now >/dev/null 2>&1 || true
	kill "$daemon" 2>/dev/null || true
	wait "$daemon" 2>/dev/null || true
	daemon=
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# block HEADING START prints the commands of a section of the README that begin so,
# without their remarks.
block() {
	awk -v heading="## $1" -v start="    $2" '
		/^## / { inside = ($0 == heading) }
		inside && index($0, start) == 1 { sub(/^ +/, ""); sub(/ +# .*/, ""); print }' README.md
}

# timed WORDS COMMAND...: runs it, with its output into a file, and prints its seconds.
timed() {
	local words=$1 from to
	shift
	from=$(date +%s%N)
	if ! "$@" >"$work/out" 2>&1 </dev/null; then
		echo "time-readme: failed: $words" >&2
		tail -n 20 "$work/out" >&2
		exit 1
	fi
	to=$(date +%s%N)
	printf '%7.1f s  %s\n' "$(((to - from) / 1000000))e-3" "$words"
}

# play DATA: runs lines of the README, each as it stands.
play() {
	local data=$1 line n=0
	export CARMA_SOCKET=$work/$data.sock CARMA_DATA_DIR=$work/$data
	while IFS= read -r line <&3; do
		n=$((n + 1))
		case $line in
		*'&') timed "$line" start_daemon "${line%&}" ;;
		'carma top') timed "$line (q after 3 s)" sh -c '(sleep 3; printf q) | script -qec "stty rows 40 cols 120; carma top" /dev/null' ;;
		*) timed "$line" bash -c "$line" ;;
		esac
	done 3<<<"$2"
	[ "$n" -ge 5 ] || { echo "time-readme: the README has $n commands there, not five" >&2; exit 1; }
}
start_daemon() {
	# shellcheck disable=SC2086 # words of a command
	$1 >"$work/daemon.log" 2>&1 3<&- &
	daemon=$!
	until bin/carma gpus >/dev/null 2>&1; do
		kill -0 "$daemon" || { cat "$work/daemon.log"; return 1; }
		sleep 0.05
	done
}

timed "git clone" git clone -q "$top" "$work/carma"
cd "$work/carma"
for words in 'make demo' 'make build image'; do
	grep -qF "$words" README.md || { echo "time-readme: the README says no $words" >&2; exit 1; }
done
timed "make demo" make demo
timed "make build image" make build image
PATH=$PWD/bin:$PATH

echo "Quick start, by hand"
hand=$(block 'Quick start, without a GPU' 'bin/carma' | grep -v -e ' replay ' -e ' estimate ')
play hand "$hand"
stop_daemon

echo "First tasks"
printf 'FROM carma/simtask\nCMD ["resnet50-imagenet-bs64", "--time", "20m"]\n' | DOCKER_BUILDKIT=0 "$docker" build -q -t my-image:1 - >/dev/null 2>&1
export CONDA_ENVS_DIRS=$work/envs
mkdir -p "$work/envs/exp/bin" "$work/envs/exp/conda-meta"
ln -s "$(command -v python3)" "$work/envs/exp/bin/python"
: >"$work/envs/exp/conda-meta/history"
echo 'print("epoch 1")' >train.py
export CARMA_SOCKET=$work/first.sock CARMA_DATA_DIR=$work/first
start_daemon "$(head -n 1 <<<"$hand" | sed 's/ *&$//')"
play first "$(block 'First tasks' 'carma ')"
timed "(until both have succeeded)" carma wait 1 2
