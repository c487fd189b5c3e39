#!/usr/bin/env bash
# Builds carma/simtask:latest, the image of the simulated task, out of the static binary
# bin/simtask and images/simtask/Dockerfile. Needs no network.
#
#   engine.sh run image.sh
set -euo pipefail

cd "$(dirname "$0")/../.."
image=carma/simtask:latest
docker=${DOCKER:-docker}
mkdir -p .cache
context=$(mktemp -d .cache/image.XXXXXX)
trap 'rm -rf "$context" "$context.log"' EXIT
log=$context.log

# Only the image's files: other files would take time to send and change the build cache.
cp images/simtask/* bin/simtask "$context/"

before=$("$docker" image inspect --format '{{.Id}}' "$image" 2>/dev/null || true)
# The classic builder: Debian's engine has no BuildKit.
if ! DOCKER_BUILDKIT=0 "$docker" build -t "$image" "$context" >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "image: $image did not build: above, the end of what docker build said" >&2
	exit 1
fi
after=$("$docker" image inspect --format '{{.Id}}' "$image")
if [ -n "$before" ] && [ "$before" != "$after" ]; then
	"$docker" image rm "$before" >/dev/null 2>&1 || true # a container may still have it
fi
echo "image: $image is ${after#sha256:}" | cut -c1-46
