#!/bin/sh
# Collects what test/lab/hardware/kubernetes.sh needs on a machine with a GPU but without
# network: the test cluster's programs, NVIDIA's DRA driver, carma, runc and the task's
# program. It writes .hardware/kubernetes-1.tar.xz and kubernetes-2.tar.xz, as one file is
# more than may travel at a time. It needs Go, a C compiler, xz, and runc (apt-get install runc).
#
# kubernetes-pack.sh [--quick]    --quick: larger files, sooner, for a rehearsal here
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
limit=$((58 * 1024 * 1024))
level=7
[ "${1:-}" != --quick ] || level=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$root/.hardware" "$work/1" "$work/2/stand-in"
cluster=$("$root/containers/kubernetes/test/build.sh")
runc=$(command -v runc) || { echo "kubernetes-pack.sh: there is no runc; apt-get install runc" >&2; exit 1; }

: "${CGO_LDFLAGS:=-O2 -g -Wl,-z,lazy}"
: "${CGO_CFLAGS:=-O2 -g -Wno-deprecated-declarations}"
export CGO_LDFLAGS CGO_CFLAGS GOFLAGS="-trimpath -buildvcs=false"
cd "$root/test/lab/hardware/nvidia"
go build -ldflags "-s -w" -o "$work/1/" sigs.k8s.io/dra-driver-nvidia-gpu/cmd/gpu-kubelet-plugin github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-cdi-hook
cp "$cluster/kube" "$work/1/"

cd "$root"
version=$(git describe --always --dirty 2>/dev/null || echo dev)
# It has all of carma.
go build -C containers/kubernetes -ldflags "-s -w -X main.version=$version" -o "$work/2/carma" ./cmd/carma-kubernetes
CGO_ENABLED=0 go build -C test/lab -ldflags "-s -w" -o "$work/2/stands" ./hardware/cluster/stands
headers=$(go list -f '{{.Dir}}' github.com/NVIDIA/go-nvml/pkg/nvml)
cc=${CC:-cc} in=$root/test/lab/hardware/cluster
$cc -O2 -Wall -o "$work/2/hold" "$in/hold.c" -ldl
$cc -shared -fPIC -O2 -w -Wl,-soname,libcuda.so.1 -o "$work/2/stand-in/libcuda.so.1" "$in/cuda.c"
$cc -shared -fPIC -O2 -w -Wl,-soname,libnvidia-ml.so.1 -I"$headers" -o "$work/2/stand-in/libnvidia-ml.so.1" "$in/nvml.c"
# runc is linked with libseccomp, which every Debian and Ubuntu with apt has.
cp "$cluster/containerd" "$cluster/containerd-shim-runc-v2" "$cluster/ctr" "$cluster/pause" "$runc" "$work/2/"

for part in 1 2; do
	to=$root/.hardware/kubernetes-$part.tar.xz
	tar -C "$work/$part" --owner=0 --group=0 -c . | xz -T2 --x86 --lzma2=preset=$level >"$to.new"
	size=$(stat -c %s "$to.new")
	if [ "$size" -gt "$limit" ]; then
		rm "$to.new"
		echo "kubernetes-pack.sh: part $part has $size bytes; at most $limit can travel" >&2
		exit 1
	fi
	mv "$to.new" "$to"
	echo "$to: $size bytes"
done
