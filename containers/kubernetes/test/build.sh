#!/usr/bin/env bash
# Builds what the test cluster needs into a folder, and prints its path:
#   kube                         etcd, apiserver, scheduler, controller-manager, kubelet
#   pause                        the first process of a pod
#   containerd, its shim, ctr    Debian's is too old: no CDI devices in pods
# About 11 CPU minutes the first time; nothing when the versions and flags are built.
#
# build.sh [--cached]    --cached: only print the path; code 3 if it is not built
#
# KUBERNETES_CACHE  folder of the builds (default ~/.cache/carma-kubernetes)
# KUBERNETES_BIN    folder of programs that were built elsewhere: its path is printed
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
GO=${GO:-go}
if [ -n "${KUBERNETES_BIN:-}" ]; then
	[ -x "$KUBERNETES_BIN/kube" ] || { echo "kubernetes: KUBERNETES_BIN: there is no $KUBERNETES_BIN/kube" >&2; exit 2; }
	echo "$KUBERNETES_BIN"
	exit
fi
cache=${KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/carma-kubernetes}
kube=$(awk '$1 == "k8s.io/kubernetes" { sub("v", "", $2); print $2; exit }' "$here/kube/go.mod")
containerd=$(awk '/^require github.com\/containerd\/containerd\/v2 / { print $3 }
	$1 == "github.com/containerd/containerd/v2" { print $2 }' "$here/containerd/go.mod" | head -1)
containerd=${containerd#v}
# The folder's name has the versions and a digest of what else goes into the build.
# Change the number with the flags below.
digest=$(cat "$here"/kube/main.go "$here"/kube/pause/main.go "$here"/*/go.mod - <<<"flags 1" | sha256sum | cut -c1-12)
bin=$cache/kubernetes-$kube-containerd-$containerd-$digest

if [ -e "$bin/done" ]; then
	echo "$bin"
	exit
fi
if [ "${1:-}" = --cached ]; then
	echo "kubernetes: $bin is not built; containers/kubernetes/test/build.sh builds it (about 11 CPU minutes)" >&2
	exit 3
fi
echo "kubernetes: building Kubernetes $kube and containerd $containerd into $bin ..." >&2
mkdir -p "$bin"
# Two builds at once would do everything twice.
exec 9>"$bin/lock"
flock 9
[ -e "$bin/done" ] && { echo "$bin"; exit; }

export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false"
version=k8s.io/component-base/version
minor=${kube#1.}
(cd "$here/containerd" && for program in containerd containerd-shim-runc-v2 ctr; do
	nice -n 10 "$GO" build -tags "no_btrfs no_devmapper no_zfs no_aufs" \
		-ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$containerd" \
		-o "$bin/$program" "github.com/containerd/containerd/v2/cmd/$program"
done) >&2
(cd "$here/kube" && "$GO" build -ldflags "-s -w" -o "$bin/pause" ./pause && nice -n 10 "$GO" build \
	-ldflags "-s -w -X $version.gitVersion=v$kube -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}" \
	-o "$bin/kube" .) >&2
touch "$bin/done"
echo "$bin"
