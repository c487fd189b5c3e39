#!/usr/bin/env bash
# carma on a real cluster of one node: builds and starts a Kubernetes on this machine,
# simulates the GPUs of a DGX Station (4 x A100 40 GB) on its node, and runs tasks as
# pods. Two share a GPU, one runs out of memory and gets a larger claim, one has two
# GPUs, one is a Job that somebody made without carma; daemon, agent and kubelet are
# killed in between; the node is cordoned. Stops all at its end.
#
# demo.sh       lib.sh has the settings; needs bin/carma and bin/simtask, root and runc
set -euo pipefail

export KUBERNETES_STATE=${KUBERNETES_STATE:-/tmp/carma-kubernetes-demo} KUBERNETES_PORT=${KUBERNETES_PORT:-18443}
. "$(dirname "$0")/lib.sh"
bin=$("$here/build.sh")
root=$(cd "$here/../../.." && pwd)
PATH=$root/bin:$PATH
work=$(mktemp -d /tmp/carma-demo.XXXXXX)
export CARMA_SOCKET=$work/carma.sock CARMA_DATA_DIR=$work/data
image=localhost/carma/simtask:1 namespace=lab speed=${DEMO_SPEED:-120}
node_agent='' daemon=''

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

clean_up() {
	code=$?
	trap - EXIT INT TERM
	if [ "$code" -ne 0 ]; then
		echo "kubernetes demo: failed; the last words of daemon and node:" >&2
		tail -n 20 "$work"/*.log >&2 || true
	fi
	for pid in $daemon $node_agent; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
	done
	"$here/down.sh" || true
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start_daemon() {
	carma daemon --driver kubernetes --kubeconfig "$config" --kubernetes-namespace $namespace --policy first-fit --idle-first=false --warm-up 0s --smact-cap 0 \
		--backoff 1s --web off >>"$work/daemon.log" 2>&1 &
	daemon=$!
	until_ok 60 "the daemon does not answer; see $work/daemon.log" carma gpus
}

start_node() {
	carma agent --simulate dgx-station-a100 --name "$node" --speed "$speed" --kubeconfig "$config" --kubernetes-namespace $namespace \
		--kubelet "$state/kubelet" --cdi "$state/cdi" --dir "$work/sim" >"$work/node.log" 2>&1 &
	node_agent=$!
	until_ok 60 "the node offers no GPUs; see $work/node.log" grep -q 'offers its GPUs' "$work/node.log"
}

# named OBJECTS: the names in a list of the cluster's.
named() { api GET "$1" | tr -d ' \n' | grep -o '"metadata":{"name":"[^"]*"' | cut -d'"' -f6; }

say "A real Kubernetes on this machine"
"$here/down.sh"
config=$("$here/up.sh")
api POST /api/v1/namespaces "{\"metadata\":{\"name\":\"$namespace\"}}" >/dev/null
apply "$root/configs/kubernetes/components/jobs/policy.yaml"
image "$work/simtask.tar" $image "$root/bin/simtask"
import "$work/simtask.tar" >/dev/null

say "The node's agent, and the daemon"
start_node
start_daemon

say "Tasks"
tasks=0
submit() {
	printf '$ carma run -d %s\n' "$*"
	carma run -d "$@" >/dev/null
	tasks=$((tasks + 1))
}
submit --name large --mem 20G $image bert-base-wikitext2-bs32 --time 80m
submit --name small --mem 6G $image mobilenet-v2-imagenet-bs64 --time 60m
# Those who declare too little come when these have all that they take, so that they run out
# of memory themselves, and none of these for them.
grown() { [ "$(carma gpus --json | grep -o '"used": *[0-9]*' | head -n 1 | tr -dc 0-9)" -ge 24000000000 ]; }
until_ok 60 "large and small do not take their memory: $(carma gpus)" grown
submit --name under-declared --mem 8G $image llama3-8layer-wikitext2-bs1 --time 40m
submit --name two-gpus --gpus 2 --mem 28G $image gpt2-large-wikitext2-bs8-2gpu --time 60m

say "An annotated Job, which asks for too little memory, too"
jobs=/apis/batch/v1/namespaces/$namespace/jobs
job() {
	api POST $jobs '{"metadata":{"name":"plain-job","annotations":{"carma.dev/memory":"4Gi"}},"spec":{"template":{"spec":{"restartPolicy":"Never",
		"containers":[{"name":"train","image":"'$image'","args":["llama3-8layer-wikitext2-bs1","--time","20m"]}]}}}}'
}
# The apiserver takes a moment to know its new policy.
gated() { job | grep -q carma.dev/start || { api DELETE "$jobs/plain-job?propagationPolicy=Foreground"; false; }; }
until_ok 30 "the policy does not gate the Job" gated
tasks=$((tasks + 1))
running() { [ "$(carma ps | grep -c ' running ')" -ge "$1" ]; }
until_ok 60 "the tasks do not run" running 3
shared() { carma gpus | grep -q '1 large, 2 small'; }
shared || fail "large and small are not on one GPU: $(carma gpus)"
show carma ps
show carma gpus
say "The pods"
named /api/v1/namespaces/$namespace/pods

oom() { carma inspect under-declared | grep -q '"outcome": "gpu-oom"'; }
until_ok 60 "no task ran out of memory" oom
say "A task ran out of memory, and gets a larger claim; the claims now"
show carma why under-declared
claims() {
	api GET /apis/resource.k8s.io/v1/namespaces/$namespace/resourceclaims | tr -d ' \n' |
		grep -o '"name":"carma-[^"]*","namespace\|"requests":{"memory":"[^"]*"' | sed -E 's/"name":"([^"]*)".*/\1/; s/.*"memory":"([^"]*)"/  memory \1/'
}
claims

say "kill -9 of the daemon, and a second one"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true # the shell says that it was killed
start_daemon
show carma ps

say "kill -9 of the node's agent and of its kubelet, and new ones"
kill -9 "$node_agent" "$(cat "$state/run/kubelet.pid")"
wait "$node_agent" 2>/dev/null || true
rm "$state/run/kubelet.pid"
"$here/up.sh" >/dev/null
start_node
well() { [ "$(carma gpus | grep -c '^ *[0-9].* mps ')" -eq 4 ] && ! carma gpus | grep -q FAULT; }
until_ok 60 "the GPUs do not come back" well
show carma gpus

say "The node is cordoned: nothing new starts there, and the reason is told"
api PATCH "/api/v1/nodes/$node" '{"spec":{"unschedulable":true}}' >/dev/null
cordoned() { carma gpus | grep -q cordoned; }
until_ok 30 "carma does not see that the node is cordoned" cordoned
submit --name later --mem 4G $image mobilenet-v2-imagenet-bs32 --time 20m
show carma why later
carma why later | grep -q 'cordoned' || fail "why does not say that the node is cordoned"
api PATCH "/api/v1/nodes/$node" '{"spec":{"unschedulable":null}}' >/dev/null

say "Waiting for all of them"
# shellcheck disable=SC2046 # a list of numbers
carma wait $(carma ps -a -q | sort -n) >/dev/null 2>&1 || true
show carma ps -a
show carma why under-declared
show carma why $namespace/plain-job
api GET "$jobs/plain-job" | tr -d ' \n' | grep -q '"type":"Complete","status":"True"' || fail "the Job is not complete: $(api GET "$jobs/plain-job")"
api DELETE "$jobs/plain-job?propagationPolicy=Background" >/dev/null

# What ps shows of both, in KiB; a page of a program's file counts in each that has it.
memory=$(ps -o rss= -p "$daemon" -p "$node_agent" | awk '{ sum += $1 } END { print sum * 1024 }')
[ "$memory" -lt 150000000 ] || fail "daemon and agent take $memory bytes, 150 MB are too many: $(ps -o rss=,args= -p "$daemon" -p "$node_agent")"

succeeded=0 recovered=0 twice=0
for id in $(carma ps -a -q); do
	carma inspect "$id" >"$work/task.json"
	grep -q '^ *"phase": "succeeded"' "$work/task.json" && succeeded=$((succeeded + 1))
	attempts=$(grep -c '^ *"outcome"' "$work/task.json")
	if grep -q '^ *"outcome": "gpu-oom"' "$work/task.json"; then
		recovered=$((recovered + 1))
	elif [ "$attempts" -ne 1 ]; then
		twice=$((twice + 1))
	fi
done
left() { [ -z "$(named /api/v1/namespaces/$namespace/pods)$(named /apis/resource.k8s.io/v1/namespaces/$namespace/resourceclaims)" ]; }
until_ok 30 "pods or claims are left: $(named /api/v1/namespaces/$namespace/pods) $(named /apis/resource.k8s.io/v1/namespaces/$namespace/resourceclaims)" left
echo
echo "kubernetes demo: $tasks tasks with an annotated Job, $succeeded succeeded, $recovered recovered with a larger claim, $((tasks - succeeded)) lost; daemon, agent and kubelet were killed once; $twice started twice; no pod or claim is left"
echo "daemon and agent take $((memory / 1000000)) MB together"
[ "$succeeded" -eq "$tasks" ] && [ "$recovered" -ge 2 ] && [ "$twice" -eq 0 ]
