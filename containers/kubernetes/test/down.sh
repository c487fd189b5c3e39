#!/usr/bin/env bash
# Stops the test cluster that up.sh started, with all its pods, and removes its state.
# lib.sh has the settings. --keep leaves the logs.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
bin=$("$here/build.sh" --cached 2>/dev/null) || bin=/nowhere
[ -d "$state/run" ] || exit 0

# stop NAME: SIGTERM, after 10 s SIGKILL.
stop() {
	local pid
	alive "$1" || return 0
	pid=$(cat "$state/run/$1.pid")
	kill "$pid" 2>/dev/null
	for _ in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$pid" 2>/dev/null
	rm -f "$state/run/$1.pid"
}

# pods ends all containers that the node has.
pods() {
	local ctr=("$bin/ctr" --address "$state/containerd/socket" --namespace k8s.io) id
	for id in $("${ctr[@]}" tasks ls -q 2>/dev/null); do
		"${ctr[@]}" tasks kill -s 9 "$id"
		"${ctr[@]}" tasks delete -f "$id"
	done >/dev/null 2>&1
}

# shims ends those that containerd has not ended, with what they hold.
shims() {
	local pid
	for pid in $(pgrep -f "^$bin/containerd-shim-runc-v2 .*-address $state/containerd/socket"); do
		pkill -9 -P "$pid"
		kill -9 "$pid"
	done 2>/dev/null
}

# The kubelet first, or it starts things anew; the apiserver before etcd, which it
# would wait for.
stop kubelet
alive containerd && pods
for part in controllers scheduler apiserver etcd containerd; do stop $part; done
shims

# What is left mounted, deepest first.
awk -v state="$state/" 'index($2, state) == 1 { print $2 }' /proc/mounts | sort -r | while read -r folder; do
	umount -l "$folder" 2>/dev/null
done
for controller in /sys/fs/cgroup/*/ /sys/fs/cgroup/; do
	[ ! -d "$controller/$group" ] || find "$controller/$group" -depth -type d -exec rmdir {} \; 2>/dev/null
done
if [ "${1:-}" = --keep ]; then
	echo "kubernetes: the logs are in $state/log" >&2
	exit 0
fi
rm -rf "$state"
