#!/usr/bin/env bash
# Builds what renders manifests and charts in tests, and prints the program's path. Two
# CPU minutes the first time; nothing when it is built.
#
# build.sh [--cached]    --cached: only print the path; code 3 if it is not built
#
# KUBERNETES_CACHE  folder of the builds (default ~/.cache/carma-kubernetes)
set -euo pipefail
cd "$(dirname "$0")/render"
cache=${KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/carma-kubernetes}
program=$cache/render-$(cat main.go go.mod | sha256sum | cut -c1-12)
if [ ! -x "$program" ]; then
	if [ "${1:-}" = --cached ]; then
		echo "kubernetes: $program is not built; containers/kubernetes/test/tools/build.sh builds it" >&2
		exit 3
	fi
	mkdir -p "$cache"
	GOFLAGS="-mod=readonly -trimpath -buildvcs=false" nice -n 5 "${GO:-go}" build -ldflags "-s -w" -o "$program.part.$$" . >&2
	mv "$program.part.$$" "$program"
fi
echo "$program"
