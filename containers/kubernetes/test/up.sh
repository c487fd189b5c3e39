#!/usr/bin/env bash
# Starts a Kubernetes on this machine's loopback: etcd, apiserver, scheduler,
# controller-manager, and a node with containerd and a real kubelet. Prints the path of
# its administrator's kubeconfig. What runs already is left running.
#
# up.sh [--no-node]      lib.sh has the settings; down.sh stops all
#
# A node needs root and runc. Nothing of a Docker engine or another containerd is
# touched: sockets, folders, control groups and ports are this cluster's own. Pods have
# no network but an address on their own loopback.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
bin=$("$here/build.sh")
with_node=1
[ "${1:-}" != --no-node ] || with_node=

mkdir -p "$state"/{etcd,kubelet,log,run,pki/server,containerd,cni/bin,cni/conf,cdi}
chmod 700 "$state/pki"
began=$(date +%s%N)

# The apiserver's certificate is made by itself. Tokens instead of client certificates:
# there is one file to read.
pki() {
	[ -s "$state/pki/tokens.csv" ] && return
	openssl genrsa -out "$state/pki/accounts.key" 2048 2>/dev/null
	openssl rsa -in "$state/pki/accounts.key" -pubout -out "$state/pki/accounts.pub" 2>/dev/null
	openssl rand -hex 16 >"$state/pki/admin.token"
	openssl rand -hex 16 >"$state/pki/kubelet.token"
	{
		echo "$(cat "$state/pki/admin.token"),admin,1,system:masters"
		echo "$(cat "$state/pki/kubelet.token"),system:node:$node,2,system:nodes"
	} >"$state/pki/tokens.csv"
}

# kubeconfig USER: as the user of that token. The certificate is in it, as a client may
# keep the one that it has read from a file for another cluster of the same folder.
kubeconfig() {
	cat >"$state/$1.kubeconfig" <<-EOF
		apiVersion: v1
		kind: Config
		clusters: [{name: test, cluster: {server: "https://127.0.0.1:$port", certificate-authority-data: $(base64 -w0 "$state/pki/server/apiserver.crt")}}]
		users: [{name: $1, user: {token: $(cat "$state/pki/$1.token")}}]
		contexts: [{name: test, context: {cluster: test, user: $1, namespace: default}}]
		current-context: test
	EOF
	chmod 600 "$state/$1.kubeconfig"
}

# controllers are those that somebody here needs.
controllers() {
	cat <<-'EOF' | paste -sd,
		resourceclaim-controller
		device-taint-eviction-controller
		job-controller
		endpointslice-controller
		statefulset-controller
		daemonset-controller
		pod-garbage-collector-controller
		garbage-collector-controller
		namespace-controller
		node-lifecycle-controller
		serviceaccount-controller
		resourcequota-controller
		root-ca-certificate-publisher-controller
		persistentvolume-binder-controller
		persistentvolumeclaim-protection-controller
		persistentvolume-protection-controller
	EOF
}

control_plane() {
	local etcd=http://127.0.0.1:$((port + 5)) peer=http://127.0.0.1:$((port + 6))
	alive etcd || GOGC=$gogc start etcd "$bin/kube" etcd --data-dir "$state/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" --log-level warn --unsafe-no-fsync
	alive apiserver || GOGC=$gogc start apiserver "$bin/kube" apiserver --etcd-servers "$etcd" --secure-port "$port" --bind-address 127.0.0.1 \
		--cert-dir "$state/pki/server" --token-auth-file "$state/pki/tokens.csv" --authorization-mode Node,RBAC \
		--service-cluster-ip-range 10.96.0.0/16 --service-account-key-file "$state/pki/accounts.pub" \
		--service-account-signing-key-file "$state/pki/accounts.key" --service-account-issuer https://kubernetes.default.svc \
		--kubelet-preferred-address-types Hostname ${KUBERNETES_NODE_IP:+--advertise-address "$KUBERNETES_NODE_IP"}
	until_ok "${KUBERNETES_WAIT:-60}" "the apiserver does not become ready" api GET /readyz
	kubeconfig admin
	kubeconfig kubelet
	# By default the scheduler sends 50 requests a second, four for a pod with a claim, and
	# the controllers 20.
	alive scheduler || GOGC=$gogc start scheduler "$bin/kube" scheduler --kubeconfig "$state/admin.kubeconfig" --leader-elect=false \
		--bind-address 127.0.0.1 --secure-port $((port + 1)) --kube-api-qps 2000 --kube-api-burst 4000
	alive controllers || GOGC=$gogc start controllers "$bin/kube" controller-manager --kubeconfig "${KUBERNETES_CONTROLLERS_CONFIG:-$state/admin.kubeconfig}" --leader-elect=false \
		--bind-address 127.0.0.1 --secure-port $((port + 2)) --kube-api-qps 1000 --kube-api-burst 2000 \
		--root-ca-file "$state/pki/server/apiserver.crt" --controllers="$(controllers)" \
		--node-monitor-grace-period "${KUBERNETES_NODE_GRACE:-50s}"
	until_ok "${KUBERNETES_WAIT:-60}" "the scheduler does not become ready" curl -fsk "https://127.0.0.1:$((port + 1))/readyz"
	until_ok "${KUBERNETES_WAIT:-60}" "the controller-manager does not become ready" curl -fsk "https://127.0.0.1:$((port + 2))/healthz"
	# Before it is there, no pod can be made.
	until_ok "${KUBERNETES_WAIT:-60}" "there is no service account in namespace default" api GET /api/v1/namespaces/default/serviceaccounts/default
	# The class of carma's simulated GPUs; it may be there.
	api POST /apis/resource.k8s.io/v1/deviceclasses '{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu.carma.dev"},
		"spec":{"selectors":[{"cel":{"expression":"device.driver == \"gpu.carma.dev\""}}]}}' >/dev/null 2>&1 || true
}

# groups: below one of its own, in each controller. Of cgroup v1, cpuset has to be
# told what its parent has; of v2, a group has the controllers that its parent passes on,
# and the kubelet wants all of them.
groups() {
	local controller
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		mkdir -p "/sys/fs/cgroup/$group"
		for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
			echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || echo "kubernetes: the control group $controller cannot be passed on" >&2
		done
		return
	fi
	for controller in /sys/fs/cgroup/*/; do
		[ -e "$controller/cgroup.procs" ] || continue
		mkdir -p "$controller/$group"
		[ ! -e "$controller/cpuset.cpus" ] || for what in cpus mems; do
			cat "$controller/cpuset.$what" >"$controller/$group/cpuset.$what"
		done
	done
}

# network: a stand-in for a CNI plugin. It changes nothing; a pod has its loopback.
network() {
	cat >"$state/cni/bin/carma-none" <<-'EOF'
		#!/bin/sh
		[ "$CNI_COMMAND" != VERSION ] || { echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'; exit; }
		[ "$CNI_COMMAND" = ADD ] || exit 0
		echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"'"$CNI_NETNS"'"}],"ips":[{"address":"127.0.0.1/8","interface":0}]}'
	EOF
	chmod 755 "$state/cni/bin/carma-none"
	echo '{"cniVersion":"1.0.0","name":"none","plugins":[{"type":"carma-none"}]}' >"$state/cni/conf/10-none.conflist"
}

containerd() {
	cat >"$state/containerd/config.toml" <<-EOF
		version = 3
		root = "$state/containerd/root"
		state = "$state/containerd/state"
		disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri"]
		[grpc]
		  address = "$state/containerd/socket"
		[ttrpc]
		  address = "$state/containerd/socket.ttrpc"
		[plugins."io.containerd.cri.v1.images"]
		  snapshotter = "overlayfs"
		  [plugins."io.containerd.cri.v1.images".pinned_images]
		    sandbox = "$pause"
		[plugins."io.containerd.cri.v1.runtime"]
		  enable_cdi = true
		  cdi_spec_dirs = ["$state/cdi"]
		  disable_apparmor = true
		  # Where CAP_SYS_RESOURCE is missing, a lower score is refused and runc fails.
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.cri.v1.runtime".cni]
		    bin_dirs = ["$state/cni/bin"]
		    conf_dir = "$state/cni/conf"
		    use_internal_loopback = true
		  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
		      SystemdCgroup = false
	EOF
	alive containerd || PATH="$bin:$PATH" start containerd "$bin/containerd" --config "$state/containerd/config.toml"
	until_ok "${KUBERNETES_WAIT:-60}" "containerd does not become ready" "$bin/ctr" --address "$state/containerd/socket" version
	if ! "$bin/ctr" --address "$state/containerd/socket" --namespace k8s.io images ls -q | grep -qx "$pause"; then
		image "$state/pause.tar" "$pause" "$bin/pause"
		import "$state/pause.tar" >/dev/null
		rm "$state/pause.tar"
	fi
}

kubelet() {
	cat >"$state/kubelet.yaml" <<-EOF
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		# Only the apiserver of this test asks it, over the loopback.
		authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		address: 127.0.0.1
		port: $((port + 7))
		healthzPort: $((port + 8))
		containerRuntimeEndpoint: unix://$state/containerd/socket
		cgroupDriver: cgroupfs
		cgroupRoot: /$group
		failCgroupV1: false
		failSwapOn: false
		makeIPTablesUtilChains: false
		podLogsDir: $state/kubelet/podlogs
		resolvConf: ""
		imageGCHighThresholdPercent: 100
		serializeImagePulls: false
		# The disk of a test machine may be nearly full.
		evictionHard: {memory.available: 50Mi}
		syncFrequency: 10s
	EOF
	alive kubelet || start kubelet "$bin/kube" kubelet --kubeconfig "$state/kubelet.kubeconfig" --config "$state/kubelet.yaml" \
		--root-dir "$state/kubelet" --cert-dir "$state/kubelet/pki" --hostname-override "$node" \
		${KUBERNETES_NODE_IP:+--node-ip "$KUBERNETES_NODE_IP"}
	until_ok "${KUBERNETES_WAIT:-60}" "the node does not become ready" node_ready
}

node_ready() { api GET "/api/v1/nodes/$node" | tr -d ' \n' | grep -q '"reason":"KubeletReady"'; }

if [ -n "$with_node" ]; then
	[ "$(id -u)" = 0 ] || fail "a node needs root; up.sh --no-node starts the control plane alone"
	command -v runc >/dev/null || fail "there is no runc; apt-get install runc"
fi
pki
control_plane
took() { # seconds since it began, with two digits
	local hundredths=$((($(date +%s%N) - began) / 10000000))
	printf '%d.%02d\n' $((hundredths / 100)) $((hundredths % 100))
}
echo "kubernetes: the control plane was up after $(took) s" >&2
if [ -n "$with_node" ]; then
	groups
	network
	containerd
	kubelet
	echo "kubernetes: the node was ready after $(took) s" >&2
fi
echo "$state/admin.kubeconfig"
