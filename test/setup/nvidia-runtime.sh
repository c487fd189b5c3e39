#!/usr/bin/env bash
# The real NVIDIA Container Runtime with GPUs that do not exist, for tests on a machine
# without a GPU. It builds the runtime from its Go module, and makes in a folder
#
#   nvidia-runtime             the runtime in CDI mode, with this folder's configuration
#   cdi/nvidia.yaml            a CDI file of N devices, by UUID and by index, and "all"
#   dev/nvidia0 ...            their device nodes, which have the numbers of /dev/null
#
#   nvidia-runtime.sh FOLDER [N]    N is 4 if not given; needs root
set -euo pipefail

cd "$(dirname "$0")/../.."
version=v1.20.1
folder=$(realpath -m "${1:?usage: nvidia-runtime.sh FOLDER [N]}")
count=${2:-4}
bin=$PWD/.cache/nvidia-$version

if [ ! -x "$bin/nvidia-container-runtime" ]; then
	echo "nvidia-runtime: building $version ..." >&2
	GOBIN=$bin ${GO:-go} install "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-container-runtime@$version"
fi

mkdir -p "$folder/cdi" "$folder/dev" "$folder/nvidia-container-runtime"
cat >"$folder/nvidia-container-runtime/config.toml" <<EOF
[nvidia-container-runtime]
mode = "cdi"
runtimes = ["runc"]
debug = "$folder/runtime.log"
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["$folder/cdi"]
default-kind = "nvidia.com/gpu"
EOF
printf '#!/bin/sh\nXDG_CONFIG_HOME=%s exec %s "$@"\n' "$folder" "$bin/nvidia-container-runtime" >"$folder/nvidia-runtime"
chmod +x "$folder/nvidia-runtime"

# Other minor numbers would need a driver, so all nodes are the null device under another name.
node() { [ -e "$folder/dev/$1" ] || mknod -m 666 "$folder/dev/$1" c 1 3; }
node nvidiactl
spec=$folder/cdi/nvidia.yaml
device() { # NAME INDEX...
	printf -- '- name: "%s"\n  containerEdits:\n    deviceNodes:\n' "$1"
	shift
	for i in "$@"; do printf '    - path: /dev/nvidia%d\n      hostPath: %s/dev/nvidia%d\n' "$i" "$folder" "$i"; done
}
{
	printf 'cdiVersion: "0.5.0"\nkind: nvidia.com/gpu\n'
	printf 'containerEdits:\n  env: ["NVIDIA_VISIBLE_DEVICES=void"]\n  deviceNodes:\n  - path: /dev/nvidiactl\n    hostPath: %s/dev/nvidiactl\ndevices:\n' "$folder"
	all=()
	for ((i = 0; i < count; i++)); do
		node "nvidia$i"
		device "$i" "$i"
		device "$(printf 'GPU-00000000-0000-0000-0000-%012d' "$i")" "$i"
		all+=("$i")
	done
	device all "${all[@]}"
} >"$spec"
