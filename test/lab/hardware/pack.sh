#!/bin/sh
# Collects the programs that a machine with a GPU but without network needs beside the tree:
# carma, the simulated task, the suite, containerd and runc. It writes .hardware/pack.tar.xz.
# It needs Go, and Debian's packages of containerd and runc.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
limit=$((60 * 1024 * 1024))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$root/.hardware" "$work/debs/partial" "$work/tree" "$work/files"

cd "$root"
: "${CGO_LDFLAGS:=-O2 -g -Wl,-z,lazy}"
: "${CGO_CFLAGS:=-O2 -g -Wno-deprecated-declarations}"
export CGO_LDFLAGS CGO_CFLAGS GOFLAGS="${GOFLAGS:-} -buildvcs=false"
version=$(git describe --always --dirty 2>/dev/null || echo dev)
go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$work/files/carma" ./cmd/carma
go build -C test/lab -trimpath -ldflags "-s -w" -o "$work/files/hardware" ./hardware
for program in simtask carma-init; do
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$work/files/$program" "./cmd/$program"
done

# runc is linked with libseccomp, which every Debian and Ubuntu with apt has.
chmod 755 "$work" "$work/debs"
if ! (cd "$work/debs" && apt-get -qq download containerd runc); then
	echo "pack.sh: apt-get has no containerd and runc; apt-get update first" >&2
	exit 1
fi
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/tree"; done
for program in usr/bin/containerd usr/bin/containerd-shim-runc-v2 usr/sbin/runc; do
	cp "$work/tree/$program" "$work/files/"
done

tar -C "$work/files" --owner=0 --group=0 -cJf "$root/.hardware/pack.tar.xz.new" .
size=$(stat -c %s "$root/.hardware/pack.tar.xz.new")
if [ "$size" -gt "$limit" ]; then
	rm "$root/.hardware/pack.tar.xz.new"
	echo "pack.sh: $size bytes; at most $limit can travel" >&2
	exit 1
fi
mv "$root/.hardware/pack.tar.xz.new" "$root/.hardware/pack.tar.xz"
echo "$root/.hardware/pack.tar.xz: $size bytes"
