#!/bin/sh
# Measures carma on a machine with a GPU, without network; docs/hardware/README.md tells what.
#
#   test/hardware/run.sh --out FOLDER [--minutes N] [--dry-run] ...
#
# Programs come from .hardware (test/hardware/pack.sh makes it), else from bin, else they are
# built with Go from the modules that are already on the machine.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
pack=$root/.hardware
bin=$root/bin

if [ -f "$pack/pack.tar.xz" ]; then
	bin=$(mktemp -d /tmp/carma-hardware.XXXXXX)
	tar -xJf "$pack/pack.tar.xz" -C "$bin" 2>/dev/null || python3 -m tarfile -e "$pack/pack.tar.xz" "$bin"
	PATH=$PATH:$bin # what the machine has of its own comes first
	export PATH
elif command -v go >/dev/null 2>&1; then
	: "${CGO_LDFLAGS:=-O2 -g -Wl,-z,lazy}"
	: "${CGO_CFLAGS:=-O2 -g -Wno-deprecated-declarations}"
	export CGO_LDFLAGS CGO_CFLAGS GOFLAGS="${GOFLAGS:-} -buildvcs=false" GOPROXY=off
	for program in carma hardware simtask; do
		at=./cmd/$program
		[ "$program" != hardware ] || at=./test/hardware
		(cd "$root" && go build -trimpath -o "$bin/$program" "$at")
	done
fi
for program in carma hardware simtask; do
	if [ ! -x "$bin/$program" ]; then
		echo "run.sh: no $bin/$program and no Go to build it; make $pack with test/hardware/pack.sh on a machine that has Go" >&2
		exit 2
	fi
done
exec "$bin/hardware" --bin "$bin" --training "$root/images/torch" --programs "$root/test/hardware" "$@"
