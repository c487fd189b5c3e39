#!/bin/sh
# Measures carma on a machine with a GPU, without network; see docs/hardware/README.md.
#
#   test/lab/hardware/run.sh --out FOLDER [--minutes N] [--dry-run] ...
#
# The programs are built with Go, from modules that the machine has. If that is not possible, they
# come from .hardware, which test/lab/hardware/pack.sh makes, or else from bin.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
pack=$root/.hardware/pack.tar.xz
bin=$root/bin

build() {
	command -v go >/dev/null 2>&1 || return 1
	: "${CGO_LDFLAGS:=-O2 -g -Wl,-z,lazy}"
	: "${CGO_CFLAGS:=-O2 -g -Wno-deprecated-declarations}"
	export CGO_LDFLAGS CGO_CFLAGS
	(
		cd "$root"
		export GOFLAGS="${GOFLAGS:-} -buildvcs=false" GOPROXY=off
		go build -trimpath -o bin/carma ./cmd/carma &&
			go build -C test/lab -trimpath -o "$bin/hardware" ./hardware &&
			CGO_ENABLED=0 go build -trimpath -o bin/carma-init ./cmd/carma-init &&
			CGO_ENABLED=0 go build -trimpath -o bin/simtask ./cmd/simtask
	)
}

if ! build && [ -f "$pack" ]; then
	bin=$root/.hardware/bin
	rm -rf "$bin"
	mkdir "$bin"
	if ! tar -xJf "$pack" -C "$bin" 2>/dev/null && ! said=$(python3 -m tarfile -e "$pack" "$bin" 2>&1); then
		echo "run.sh: $pack cannot be unpacked: it needs tar and xz, or a python3 with lzma; python3 -m tarfile says: $(printf '%s\n' "$said" | tail -n 1)" >&2
		exit 2
	fi
	PATH=$PATH:$bin # the machine's own programs come first
	export PATH
fi
for program in carma hardware simtask; do
	if [ ! -x "$bin/$program" ]; then
		echo "run.sh: no $bin/$program, and Go cannot build it here; make $pack with test/lab/hardware/pack.sh on a machine that has Go" >&2
		exit 2
	fi
done
exec "$bin/hardware" --bin "$bin" --training "$root/images/torch" --programs "$root/test/lab/hardware" "$@"
