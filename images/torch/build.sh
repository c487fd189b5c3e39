#!/usr/bin/env bash
# Builds carma/torch:latest on an image with PyTorch, and a tag of it for each published workload
# (the file workloads). The tags differ only in labels and command.
#
#   BASE=my/pytorch:latest images/torch/build.sh [TAG...]
#
# TAG is a name in the file workloads; without one all are built. Only BASE is fetched, if the engine
# does not have it.
#
# BASE   the image to build on, pytorch/pytorch:latest if unset
# NAME   the image's name, carma/torch if unset
# DOCKER the docker command
set -euo pipefail

cd "$(dirname "$0")"
docker=${DOCKER:-docker}
name=${NAME:-carma/torch}

tags=$(sed '/^#/d' workloads | cut -d' ' -f1)
for tag in "$@"; do
	if ! grep -qx -- "$tag" <<<"$tags"; then
		like=$(grep -- "^${tag:0:4}" <<<"$tags" | paste -sd' ' || true)
		echo "build: no workload $tag in images/torch/workloads; ${like:-$(paste -sd' ' <<<"$tags")}" >&2
		exit 2
	fi
done

# The classic builder: Debian's engine has no BuildKit.
build() {
	local tag=$1 log
	shift
	if ! log=$(DOCKER_BUILDKIT=0 "$docker" build -t "$name:$tag" "$@" 2>&1); then
		tail -n 15 <<<"$log" >&2
		echo "build: $name:$tag did not build: above, the end of what docker build said" >&2
		exit 1
	fi
	echo "build: $name:$tag"
}

build latest ${BASE:+--build-arg "BASE=$BASE"} .
sed '/^#/d' workloads | while read -r tag model batch gpus args; do
	if [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qx -- "$tag"; then
		continue
	fi
	# At a run carma puts the batch size that it estimates with here, from the label or the user.
	build "$tag" - <<-END
		FROM $name:latest
		LABEL carma.est-model="$model" carma.batch-size="$batch" carma.gpus="$gpus"
		ENV CARMA_BATCH_SIZE="$batch"
		CMD ["${args// /\", \"}"]
	END
done
