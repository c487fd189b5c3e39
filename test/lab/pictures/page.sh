#!/bin/sh
# Records the page as two pictures, light and dark: page.sh docs/page
# Real containers on the engine, on a simulated DGX Station, in Chromium. It has its own
# daemon, and leaves nothing running. make picture-page builds what it needs.
set -eu

out=$1
top=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d /tmp/carma-picture.XXXXXX)
PATH=$top/bin:$PATH
export CARMA_SOCKET="$work/s" CARMA_DATA_DIR="$work/data" CARMA_CONFIG=/dev/null
daemon=

clean_up() {
	code=$?
	trap - EXIT INT TERM
	if [ -n "$daemon" ]; then
		carma stop --all -t 1 >/dev/null 2>&1 || true
		kill "$daemon" 2>/dev/null || true
		wait "$daemon" 2>/dev/null || true
	fi
	[ "$code" -eq 0 ] || tail -n 5 "$work/daemon.log" >&2
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

carma daemon --gpus sim:dgx-station-a100 --speed 20 --web 127.0.0.1:0 >"$work/daemon.log" 2>&1 &
daemon=$!
tries=0
until carma gpus >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || { echo "page.sh: the daemon did not start" >&2; exit 1; }
	sleep 0.1
done

submit() {
	name=$1
	shift
	carma run -d --name "$name" "$@" >/dev/null
}
image=carma/simtask:latest
submit warm-up --est-model mnist-cnn-bs64-14e "$image" mnist-cnn-bs64-14e
submit detector --est-model maskrcnn-coco-bs8 "$image" maskrcnn-coco-bs8
submit gpt2-large --gpus 2 --est-model gpt2-large-wikitext2-bs8-2gpu "$image" gpt2-large-wikitext2-bs8-2gpu
submit vgg16 --est-model vgg16-imagenet-bs128 "$image" vgg16-imagenet-bs128
submit mobilenet --est-model mobilenet-v2-imagenet-bs64 "$image" mobilenet-v2-imagenet-bs64
submit efficientnet --est-model efficientnet-b0-imagenet-bs64 "$image" efficientnet-b0-imagenet-bs64
submit resnet50 --est-model resnet50-imagenet-bs64 "$image" resnet50-imagenet-bs64
submit too-little --mem 2G "$image" bert-base-wikitext2-bs32
carma run -d --group sweep --array 1-3 --mem 30G "$image" vgg16-imagenet-bs128 >/dev/null
submit "for-4-gpus" --gpus 4 --exclusive "$image" vgg16-imagenet-bs128
sleep 8

cd "$top"
bin/lab/page "$(carma web --print | head -n 1)" "$out"
