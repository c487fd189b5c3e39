#!/bin/sh
# Records a terminal session with carma as a picture: record.sh FILE.svg
# Real containers on the engine, on a simulated DGX Station, in a terminal of tmux. It
# has its own daemon, and leaves nothing running. make picture-terminal builds what it needs.
set -eu

out=$1
top=$(cd "$(dirname "$0")/../../.." && pwd)
command -v tmux >/dev/null || { echo "record.sh: no tmux: apt-get install tmux" >&2; exit 2; }
work=$(mktemp -d /tmp/carma-picture.XXXXXX)
PATH=$top/bin:$PATH
export CARMA_SOCKET="$work/s" CARMA_DATA_DIR="$work/data" CARMA_CONFIG=/dev/null
width=110 height=28
daemon=

clean_up() {
	code=$?
	trap - EXIT INT TERM
	tmux -S "$work/t" kill-server 2>/dev/null || true
	if [ -n "$daemon" ]; then
		carma stop --all -t 1 >/dev/null 2>&1 || true
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

carma daemon --gpus sim:dgx-station-a100 --speed 30 >"$work/daemon.log" 2>&1 &
daemon=$!
tries=0
until carma gpus >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || { echo "record.sh: the daemon did not start" >&2; exit 1; }
	sleep 0.1
done

t() { tmux -S "$work/t" "$@"; }
# capture NAME WORDS: the screen, once it shows the words.
capture() {
	tries=0
	until t capture-pane -p | grep -q -- "$2"; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || { echo "record.sh: no '$2' on the screen:" >&2; t capture-pane -p >&2; exit 1; }
		sleep 0.1
	done
	sleep 1
	t capture-pane -p -e -N >"$work/$1"
}
submit() {
	name=$1
	shift
	carma run -d --name "$name" "$@" >/dev/null
}
image=carma/simtask:latest
submit detector --est-model maskrcnn-coco-bs8 "$image" maskrcnn-coco-bs8
submit gpt2-large --gpus 2 --est-model gpt2-large-wikitext2-bs8-2gpu "$image" gpt2-large-wikitext2-bs8-2gpu
submit vgg16 --est-model vgg16-imagenet-bs128 "$image" vgg16-imagenet-bs128
submit mobilenet --est-model mobilenet-v2-imagenet-bs64 "$image" mobilenet-v2-imagenet-bs64
submit efficientnet --est-model efficientnet-b0-imagenet-bs64 "$image" efficientnet-b0-imagenet-bs64
submit resnet50 --est-model resnet50-imagenet-bs64 "$image" resnet50-imagenet-bs64
carma run -d --group sweep --array 1-4 --mem 30G "$image" vgg16-imagenet-bs128 >/dev/null
submit "for-4-gpus" --gpus 4 --exclusive "$image" vgg16-imagenet-bs128
sleep 8

LC_ALL=C.UTF-8 t -u -f /dev/null new-session -d -x "$width" -y "$height" "LC_ALL=C.UTF-8 TERM=xterm-256color carma top"
capture 1 "START IN"
sleep 6 # expected starts come one after the other
capture 1 "START IN"
t send-keys Enter
capture 2 "details of task"
t send-keys Escape
sleep 0.3
t send-keys End
sleep 0.3
t send-keys w
capture 3 "why task"
t send-keys Escape
sleep 0.3
t send-keys Home
sleep 0.3
t send-keys l
capture 4 "samples/s\|loss"

cd "$top"
bin/lab/pictures -width "$width" -height "$height" -seconds 4 "$work/1" "$work/2" "$work/3" "$work/4" >"$work/out.svg"
mkdir -p "$(dirname "$out")"
mv "$work/out.svg" "$out"
echo "$out: $(wc -c <"$out") bytes"
