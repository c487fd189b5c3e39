#!/usr/bin/env bash
# A command with Docker Engine 29, built from its Go modules, instead of the machine's own
# engine: dockerd and docker-proxy of github.com/moby/moby/v2, containerd, runc. It has
# folders, a socket and a bridge of its own, and ends with the command.
#
#   newest-engines.sh CMD...    needs root, and Debian's docker.io for the client and docker-init
#
# The build takes some minutes of processor time; it is kept in .cache.
set -euo pipefail

cd "$(dirname "$0")/../.."
moby=v2.0.0-beta.24 # API 1.56: the line of Docker 29
containerd=v2.2.9
runc=v1.5.2 # older ones than 1.2 refuse the namespaces that this dockerd asks for
bin=$PWD/.cache/engines-$moby-$containerd-$runc
state=/run/carma-engines
bridge=carma29

say() { printf 'newest-engines: %s\n' "$*" >&2; }

# build MODULE@VERSION TAGS PACKAGE... leaves the programs in the folder. In a module of
# its own: replacements in a module's file keep go install from building it.
build() {
	local dir of=$1 tags=$2
	shift 2
	dir=$(mktemp -d)
	(
		cd "$dir"
		go mod init build >/dev/null 2>&1
		printf '//go:build tools\n\npackage build\n\nimport (\n' >tools.go
		printf '\t_ "%s"\n' "$@" >>tools.go
		printf ')\n' >>tools.go
		GOFLAGS=-mod=mod go get "$of" >/dev/null 2>&1
		GOFLAGS=-mod=mod go build -buildvcs=false -tags "$tags" -ldflags "-X github.com/moby/moby/v2/dockerversion.Version=29.0.0-$moby" -o "$bin.new/" "$@"
	)
	rm -rf "$dir"
}

if [ ! -d "$bin" ]; then
	if ! dpkg -s libseccomp-dev pkg-config >/dev/null 2>&1; then
		say 'installing libseccomp-dev and pkg-config from Debian ...'
		apt-get -qq -y install --no-install-recommends libseccomp-dev pkg-config >/dev/null
	fi
	say "building dockerd $moby, containerd $containerd, runc $runc ..."
	rm -rf "$bin.new" && mkdir -p "$bin.new"
	build "github.com/moby/moby/v2@$moby" '' github.com/moby/moby/v2/cmd/{dockerd,docker-proxy}
	build "github.com/containerd/containerd/v2@$containerd" '' github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2}
	build "github.com/opencontainers/runc@$runc" seccomp github.com/opencontainers/runc
	mv "$bin.new" "$bin"
fi

mkdir -p "$state"
ip link show "$bridge" >/dev/null 2>&1 || {
	ip link add "$bridge" type bridge
	ip addr add 172.29.0.1/16 dev "$bridge"
	ip link set "$bridge" up
}
trap 'ip link del "$bridge"; rm -rf "$state/data"' EXIT
export PATH=$bin:$PATH DOCKER_HOST=unix://$state/docker.sock CARMA_ENGINE_DIR=$state/engine
export CARMA_DOCKERD_ARGS="--data-root $state/data --exec-root $state/exec --pidfile $state/docker.pid --bridge $bridge"
test/setup/engine.sh run "$@"
