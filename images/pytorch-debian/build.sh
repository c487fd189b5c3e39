#!/usr/bin/env bash
# Builds carma/pytorch-debian:latest out of Debian's packages: Python 3.11, PyTorch 1.13 and
# NumPy on the CPU, enough for the probe's tests. No image is pulled; it takes some 3 minutes,
# 150 MB of packages and 2 GB of disk. Run as root, with debootstrap installed:
#
#   test/setup/engine.sh run images/pytorch-debian/build.sh [FOLDER]
#
# The root file system is made in FOLDER, which is kept; a complete one is used again. Without
# FOLDER it is made in a folder under .cache, which is removed at the end.
set -euo pipefail

cd "$(dirname "$0")/../.."
image=carma/pytorch-debian:latest
docker=${DOCKER:-docker}
packages='python3-torch python3-numpy'
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

if ! command -v debootstrap >/dev/null; then
	echo "build: as root, run: apt-get install -y debootstrap" >&2
	exit 2
fi
root=${1:-}
if [ -z "$root" ]; then
	mkdir -p .cache
	root=$(mktemp -d .cache/pytorch-debian.XXXXXX)
	trap 'rm -rf "$root"' EXIT
fi

if [ ! -e "$root/.complete" ]; then
	echo "build: a minimal Debian in $root ..."
	debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
		tail -n 15 "$root.log" >&2
		exit 1
	}
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	echo "build: $packages ..."
	chroot "$root" apt-get -qq update
	# shellcheck disable=SC2086 # a list
	DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -qq -y install --no-install-recommends $packages >>"$root.log" 2>&1 || {
		tail -n 15 "$root.log" >&2
		exit 1
	}
	chroot "$root" apt-get clean
	rm -rf "$root"/var/lib/apt/lists/* "$root/etc/resolv.conf" "$root.log"
	touch "$root/.complete"
fi

echo "build: importing it as $image ..."
tar -C "$root" --exclude=./proc/* --exclude=./sys/* -c . |
	"$docker" import --change 'WORKDIR /work' --change 'CMD ["python3"]' - "$image" >/dev/null
"$docker" run --rm --network none "$image" python3 -c 'import torch; print("build: PyTorch", torch.__version__)'
