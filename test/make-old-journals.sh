#!/usr/bin/env bash
# Makes runner/testdata/journals/COMMIT: the files that a daemon of that commit leaves on disk,
# once killed and once stopped, with tasks in every state. The tests of upgrades open copies.
# It needs a Docker engine and some minutes. Nothing else uses the daemon that it starts.
#
#   test/make-old-journals.sh c2fad6d
set -euo pipefail

commit=${1:?which commit}
repo=$(cd "$(dirname "$0")/.." && pwd)
out=$repo/runner/testdata/journals/$commit
work=$(mktemp -d /tmp/oj.XXXXXX)
sim=carma-old-journals:simtask tool=carma-old-journals:tool
export CARMA_SOCKET=$work/s
daemon= data=

# containers [FILTER...] lists the containers of the data folder, with the ended ones.
containers() {
	[ -f "$data/carma.db" ] || return 0
	docker ps -aq --filter "label=carma.daemon=$(sqlite3 "$data/carma.db" "select value from meta where key = 'instance'")" "$@"
}

clean_up() {
	code=$?
	trap - EXIT
	[ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null || true
	for data in "$work"/data-*; do
		containers | xargs -r docker rm -f >/dev/null
	done
	docker image rm $sim $tool >/dev/null 2>&1 || true
	git -C "$repo" worktree remove --force "$work/src" >/dev/null 2>&1 || true
	[ "$code" -eq 0 ] || tail -n 20 "$work/log" >&2
	rm -rf "$work"
	exit "$code"
}
trap clean_up EXIT

git -C "$repo" worktree add --detach "$work/src" "$commit" >/dev/null
cd "$work/src"
export CGO_LDFLAGS="-O2 -g -Wl,-z,lazy" CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" GOFLAGS=-buildvcs=false
go build -trimpath -ldflags "-X main.version=$commit" -o "$work/" ./cmd/carma
CGO_ENABLED=0 go build -trimpath -o "$work/" ./cmd/carma-init ./cmd/simtask ./containers/containerstest/tool
for image in simtask tool; do
	tar -C "$work" -c $image | docker import -c "ENTRYPOINT [\"/$image\"]" - carma-old-journals:$image >/dev/null
done
carma() { "$work/carma" "$@"; }

start() {
	"$work/carma" daemon --data-dir "$data" --gpus sim:dgx-station-a100 --policy first-fit --backoff 10h --warm-up 0s --shrink 5m "$@" >>"$work/log" 2>&1 &
	daemon=$!
	until carma gpus >/dev/null 2>&1; do
		kill -0 $daemon
		sleep 0.1
	done
}
end() {
	kill "-$1" $daemon
	wait $daemon 2>/dev/null || true
	daemon=
}
submit() { carma run -d "$@" >/dev/null; }
# await NAME FILTER waits until a task's record satisfies a filter of jq.
task() { carma inspect "$1" | jq -c 'if type == "array" then .[0] else . end'; }
await() {
	for _ in $(seq 600); do
		if task "$1" | jq -e "$2" >/dev/null; then return; fi
		sleep 0.1
	done
	echo "$1 never satisfies $2:" >&2
	task "$1" >&2
	return 1
}
running() { await "$1" '.phase == "running"'; }
long=(--time 4000h)


# scenario makes a daemon's tasks reach all states.
scenario() {
	start --speed 60
	submit --name gone --mem 512M $tool block:143
	running gone
	# The first snapshot: while no daemon runs, somebody removes a container.
	end TERM
	docker rm -f "$(containers --filter label=carma.name=gone)" >/dev/null
	start --speed 60
	await gone '.phase == "recovering"'
	submit --name hog --mem 35G $sim resnet50-imagenet-bs64 --peak 35G "${long[@]}"
	running hog
	submit --name shrunk --mem 37G $sim resnet50-imagenet-bs64 "${long[@]}"
	submit --name grown --mem 5G $sim mnist-cnn-bs64-14e --peak 12G "${long[@]}"
	running grown
	submit --name stubborn --mem 512M $tool stubborn
	submit --name full --mem 38G $sim resnet50-imagenet-bs64 --peak 38G "${long[@]}"
	submit --name both --mem 512M --gpus 2 $tool block:143
	submit --name good --mem 512M $tool out:hello exit:0
	submit --name bad --mem 512M $tool err:no exit:3
	for t in shrunk stubborn full both; do running $t; done
	await good '.phase == "succeeded"'
	await bad '.phase == "failed"'
	await grown '.attempts[0].grant > 12000000000'
	await shrunk '.attempts[0].grant < 10000000000'
	submit --name filler1 --mem 28G $sim resnet50-imagenet-bs64 --peak 28G "${long[@]}"
	submit --name filler2 --mem 20G $sim resnet50-imagenet-bs64 --peak 20G "${long[@]}"
	running filler1
	running filler2
	submit --name unlucky --mem 2G $sim resnet50-imagenet-bs64 --peak 10G "${long[@]}"
	await unlucky '.phase == "recovering"'
	curl -sS --unix-socket "$CARMA_SOCKET" -X PUT http://carma/v1/speed -d '{"speed":1}' >/dev/null
	submit --name after --after hog --mem 1G $tool exit:0
	submit --name later --delay 9h --mem 1G $tool exit:0
	submit --group few --array 1-3%1 --mem 256M $tool block:143
	submit --name large --mem 39G $tool block:143
	submit --name mistake --mem 39G $tool exit:0
	carma stop mistake >/dev/null
	carma stop -t 36000 stubborn >/dev/null 2>&1 &
	await stubborn '.phase == "stopping"'
	await after '.phase == "held"'
	await few-1 '.phase == "running"'
	await few-2 '.phase == "held"'
	carma ps -a --json >"$work/tasks.json"
}

# keep FOLDER keeps the journal as it is on disk, the tasks as the daemon last reported them,
# and the containers as the engine lists them.
keep() {
	mkdir -p "$out/$1"
	rm -f "$out/$1"/*
	for f in "$data"/carma.db*; do
		case $f in *-shm) ;; *) gzip -n9 <"$f" >"$out/$1/$(basename "$f").gz" ;; esac
	done
	jq 'sort_by(.id) | map({id, name, phase, attempts: [.attempts[]? | {n, outcome, grant, gpus: [.gpus[]?.index]}]})' "$work/tasks.json" >"$out/$1/tasks.json"
	containers | xargs docker inspect |
		jq 'map({name: .Name[1:], image: .Config.Image, state: .State.Status, labels: .Config.Labels}) | sort_by(.name)' >"$out/$1/containers.json"
}

for how in stopped:TERM killed:KILL; do
	data=$work/data-${how%:*}
	scenario
	end "${how#*:}"
	keep "${how%:*}"
done
