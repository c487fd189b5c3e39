# What the scripts of the test cluster share. Sourced, not run.
#
# KUBERNETES_STATE  folder of the running cluster (default /tmp/carma-kubernetes-UID)
# KUBERNETES_PORT   the apiserver's port on 127.0.0.1; the nine ports after it are used
#                   too (default 16443)
# KUBERNETES_CONTROLLERS_CONFIG  how the controllers reach the apiserver (default: the
#                   administrator's kubeconfig)
# KUBERNETES_NODE_GRACE  how long a node may say nothing (default 50s)
# KUBERNETES_WAIT   how many seconds a part may take to become ready (default 60)
# KUBERNETES_GOGC  how much memory the control plane may use to collect garbage less often:
#                   GOGC of its programs (default 400; 100 is Go's own)
# KUBERNETES_NODE_IP  an address of this machine, which is not of its loopback's own. Only a
#                   machine without a default route needs it
# KUBERNETES_BIN    folder of the programs, if they were built elsewhere; nothing is built

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
state=${KUBERNETES_STATE:-/tmp/carma-kubernetes-$(id -u)}
port=${KUBERNETES_PORT:-16443}
# The node is known by a name that leads to this machine: the apiserver fetches logs
# from it.
node=localhost
# The node's control groups are below this one, apart from all others, also those of
# another test cluster.
group=carma-kubernetes-$port
# A pod's containers, and what sets up its network.
pause=localhost/carma-pause:1

fail() { echo "kubernetes: $*" >&2; exit 1; }

gogc=${KUBERNETES_GOGC:-400}

# start NAME COMMAND...: in the background, with a log and a file with its number.
start() {
	local name=$1
	shift
	setsid nohup "$@" >>"$state/log/$name.log" 2>&1 </dev/null &
	echo $! >"$state/run/$name.pid"
}

# alive NAME: its process is there, and is that program.
alive() {
	local pid
	pid=$(cat "$state/run/$1.pid" 2>/dev/null) && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "$state\|--secure-port\|$bin"
}

# until_ok SECONDS WHAT COMMAND...: waits for a command to succeed.
until_ok() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "$what; see $state/log"
		sleep 0.1
	done
}

# api METHOD PATH [JSON]: a request to the apiserver, as its administrator.
api() {
	local type=application/json
	[ "$1" != PATCH ] || type=application/merge-patch+json
	curl -sS --fail-with-body --cacert "$state/pki/server/apiserver.crt" -X "$1" -H "Authorization: Bearer $(cat "$state/pki/admin.token")" \
		-H "Content-Type: $type" ${3:+--data "$3"} "https://127.0.0.1:$port$2"
}

# image ARCHIVE NAME PROGRAM: an image of one static program, as docker save writes it.
# image ARCHIVE NAME FOLDER: of all that is in a folder; it has no program of its own.
image() {
	local work id layer machine config='{}'
	work=$(mktemp -d "$state/image.XXXXXX")
	if [ -d "$3" ]; then
		tar -C "$3" --owner=0 --group=0 --mtime=@0 -cf "$work/layer.tar" .
	else
		cp "$3" "$work/program"
		chmod 755 "$work/program"
		tar -C "$work" --owner=0 --group=0 --mtime=@0 -cf "$work/layer.tar" program
		config='{"Entrypoint":["/program"]}'
	fi
	case $(uname -m) in x86_64) machine=amd64 ;; aarch64) machine=arm64 ;; *) machine=$(uname -m) ;; esac
	layer=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
	cat >"$work/config.json" <<-EOF
		{"architecture":"$machine","os":"linux","config":$config,"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]}}
	EOF
	id=$(sha256sum <"$work/config.json" | cut -d' ' -f1)
	mv "$work/config.json" "$work/$id.json"
	echo "[{\"Config\":\"$id.json\",\"RepoTags\":[\"$2\"],\"Layers\":[\"layer.tar\"]}]" >"$work/manifest.json"
	tar -C "$work" -cf "$1" "$id.json" layer.tar manifest.json
	rm -rf "$work"
}

# import ARCHIVE: into the node.
import() { "$bin/ctr" --address "$state/containerd/socket" --namespace k8s.io images import --no-unpack=false "$1"; }

# apply FILE: makes the objects of a file of YAML documents that are not there yet.
apply() {
	local work doc kind group path
	work=$(mktemp -d "$state/apply.XXXXXX")
	awk -v work="$work" 'BEGIN { n = 1 } /^---$/ { n++; next } { print > (work "/" n ".yaml") }' "$1"
	for doc in "$work"/*.yaml; do
		kind=$(awk '$1 == "kind:" { print tolower($2); exit }' "$doc")
		group=$(awk '$1 == "apiVersion:" { print $2; exit }' "$doc")
		case $kind in *policy) path=${kind%y}ies ;; *) path=${kind}s ;; esac
		curl -sS --fail-with-body --cacert "$state/pki/server/apiserver.crt" -X POST -H "Authorization: Bearer $(cat "$state/pki/admin.token")" \
			-H "Content-Type: application/yaml" --data-binary "@$doc" "https://127.0.0.1:$port/apis/$group/$path" >"$work/answer" ||
			grep -q AlreadyExists "$work/answer" || fail "$1, $kind: $(cat "$work/answer")"
	done
	rm -rf "$work"
}
