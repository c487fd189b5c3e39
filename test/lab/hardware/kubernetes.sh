#!/usr/bin/env bash
# Checks carma on a Kubernetes of one node with a real GPU, by NVIDIA's own DRA driver, on
# a machine without network; see docs/hardware/README.md.
#
#   test/lab/hardware/kubernetes.sh --out FOLDER [--seconds N] [--stand-in]
#   test/lab/hardware/kubernetes.sh --facts
#
# It needs root, one NVIDIA GPU with its driver, and what test/lab/hardware/kubernetes-pack.sh
# makes: .hardware/kubernetes-1.tar.xz and kubernetes-2.tar.xz. --facts says what the machine
# has, and needs nothing. --stand-in is a rehearsal: the driver's libraries are stand-ins.
# Each check has a row in FOLDER/kubernetes.md. It ends by itself, and stops all it started.
set -uo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
out='' limit=225 stand_in='' facts=''
while [ $# -gt 0 ]; do
	case $1 in
	--out) out=$2 && shift ;;
	--seconds) limit=$2 && shift ;;
	--stand-in) stand_in=1 ;;
	--facts) facts=1 ;;
	*) echo "kubernetes.sh: $1 is not known; write --out FOLDER" >&2 && exit 2 ;;
	esac
	shift
done

# driver_folder prints where the driver's libraries are.
driver_folder() {
	local folder
	for folder in /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib/wsl/lib $(ldconfig -p 2>/dev/null | sed -n 's|.*libcuda.so.1.* => \(.*\)/[^/]*|\1|p'); do
		[ ! -e "$folder/libcuda.so.1" ] || { echo "$folder" && return; }
	done
	return 1
}

# The folder with the machine's Python environment that has PyTorch, in .venv.
torch=${CARMA_TORCH:-/opt/torch}

if [ -n "$facts" ]; then
	uname -a
	for program in curl openssl awk xz tar pgrep mount umount setsid flock ldconfig ldd nvidia-smi gcc ip iptables nsenter modprobe python3; do
		printf '%s: %s\n' "$program" "$(command -v $program || echo none)"
	done
	echo "driver: $(driver_folder || echo none)"
	ls -la /usr/local/nvidia /usr/local/nvidia/* /dev/nvidia* /dev/kmsg /proc/driver/nvidia 2>&1 | head -80
	cat /proc/driver/nvidia/version /proc/driver/nvidia/gpus/*/information 2>&1
	ls -la "$torch" "$torch/.venv/bin/python3" 2>&1
	grep -E 'cgroup|overlay|tmpfs| / ' /proc/mounts
	cat /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/cgroup.subtree_control 2>&1
	cat /proc/self/cgroup /proc/cmdline /etc/os-release 2>&1 | head -30
	ls "$root/.hardware" 2>&1
	ulimit -a
	exit 0
fi
[ -n "$out" ] || { echo "kubernetes.sh: write --out FOLDER" >&2 && exit 2; }
[ "$(id -u)" = 0 ] || { echo "kubernetes.sh: a node needs root" >&2 && exit 2; }
mkdir -p "$out"
out=$(cd "$out" && pwd)

# All is on a tmpfs: overlay file systems work there, whatever the disk is.
work=/tmp/carma-k8s
began=$(date +%s%N)
rm -rf "$work"
mkdir -p "$work"
mount -t tmpfs -o mode=755 tmpfs "$work" || echo "no tmpfs at $work" >&2
grep -q ' /sys/fs/cgroup' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup
mkdir -p "$work/bin" "$work/log"
for part in "$root"/.hardware/kubernetes-1.tar.xz "$root"/.hardware/kubernetes-2.tar.xz; do
	tar -xJf "$part" -C "$work/bin" 2>/dev/null || python3 -m tarfile -e "$part" "$work/bin" || {
		echo "kubernetes.sh: $part cannot be unpacked, or is not there" >&2
		umount -l "$work"
		exit 2
	}
done
for program in curl openssl; do
	command -v "$program" >/dev/null || ln -s stands "$work/bin/$program"
done

# A Kubernetes wants an address, though all of it is on the loopback.
if ! awk '$2 == "00000000" { found = 1 } END { exit !found }' /proc/net/route; then
	"$work/bin/stands" loopback 10.99.99.1 && export KUBERNETES_NODE_IP=10.99.99.1
fi
grep -qs localhost /etc/hosts || echo 127.0.0.1 localhost >>/etc/hosts
case $(cat /proc/sys/kernel/hostname) in '' | *[!a-z0-9.-]*) echo carma-node >/proc/sys/kernel/hostname ;; esac
export KUBERNETES_STATE=$work/k KUBERNETES_PORT=${KUBERNETES_PORT:-18600} KUBERNETES_BIN=$work/bin
export PATH=$PATH:$work/bin # the machine's own programs come first
export CARMA_SOCKET=$work/carma.sock CARMA_DATA_DIR=$work/data
. "$root/containers/kubernetes/test/lib.sh"
bin=$KUBERNETES_BIN namespace=lab image=localhost/carma/hold:1
scripts=$root/test/lab/hardware/cluster
. "$scripts/parts.sh"
. "$scripts/checks.sh"

trap 'finish' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# Whatever hangs, this ends.
main=$$
(sleep $((limit + 20)) && kill -TERM $main) >/dev/null 2>&1 &
guard=$!

echo '| check | result | seconds | seen |' >"$table"
echo '|---|---|---|---|' >>"$table"
say "machine: $(uname -sr), $(grep -c ^processor /proc/cpuinfo) processors, control groups $([ -e /sys/fs/cgroup/cgroup.controllers ] && echo 2 || echo 1), $(date -u +%F)${stand_in:+, with stand-ins for the driver}"
check 'unpacked' true
check 'driver' driver_root || exit 1
check 'cluster' cluster_up || exit 1
check 'image' make_image || exit 1
check "NVIDIA's DRA driver" plugin_up || exit 1
check 'a: what it publishes' published
check 'agent' agent_up
check 'daemon' daemon_up || exit 1
run_checks
