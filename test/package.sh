#!/usr/bin/env bash
# Installs carma's package in a clean Debian 12 with systemd and Docker (in a container of
# systemd-nspawn), runs a task as a second user, upgrades while it runs, removes, purges;
# lintian; the .rpm's contents and scripts. As root, on Debian; nothing of it stays.
#
#   test/package.sh        some two minutes, a minute of it for Debian
#   VERBOSE=1 ...          with what every command prints
#
# It ends with 77 where no Debian 12 can be made, or booted.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'package: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
# cannot: not here, whatever the package is like.
cannot() { say "$*" >&2; exit 77; }

[ "$(id -u)" = 0 ] || die "needs root"
missing=()
for pair in mmdebstrap:mmdebstrap systemd-nspawn:systemd-container lintian:lintian rpm:rpm; do
	command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
	say "installing ${missing[*]} from Debian's packages ..."
	apt-get -qq update || true
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${missing[@]}" >/dev/null || cannot "no ${missing[*]} to be had"
fi

work=$(mktemp -d /var/tmp/carma-package.XXXXXX)
root=$work/root
machine= # the first process of the container
finish() {
	code=$?
	trap - EXIT
	if [ $code != 0 ] && [ -s "$work/log" ]; then
		say "the end of what was printed:" >&2
		tail -n 60 "$work/log" >&2
	fi
	if [ -n "$machine" ]; then
		kill -KILL "$machine" 2>/dev/null || true # a container's first process takes the rest with it
		wait "$nspawn" 2>/dev/null || true
	fi
	rm -rf --one-file-system "$work"
	exit $code
}
trap finish EXIT

# in runs a command in the container, as root.
in_() { nsenter -t "$machine" -a env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@" </dev/null; }
# try runs one there that must succeed; as_ as a user. What is printed is in $said.
try() {
	printf '\n$ %s\n' "$*" >>"$work/log"
	said=$(in_ "$@" 2>&1) || { printf '%s\n' "$said" >>"$work/log"; die "failed: $*"; }
	printf '%s\n' "$said" >>"$work/log"
	[ -z "${VERBOSE-}" ] || printf '$ %s\n%s\n' "$*" "$said"
}
as_() { user=$1; shift; try runuser -u "$user" -- sh -c "cd; $*"; }
has() { grep -Eq -- "$1" <<<"$said" || die "should say '$1': $said"; }
lacks() { ! grep -Eq -- "$1" <<<"$said" || die "should not say '$1': $said"; }
# until_ waits at most 30 s for a command to succeed.
until_() {
	for _ in $(seq 150); do ! in_ "$@" >/dev/null 2>&1 || return 0; sleep 0.2; done
	die "waited 30 s in vain: $*"
}

say "two versions ..."
for version in 1 2; do
	VERSION=0.0.$version cmd/release.sh "$work/$version" >>"$work/log" 2>&1
done
old=$work/1/carma_0.0.1_$(dpkg --print-architecture).deb
new=$work/2/carma_0.0.2_$(dpkg --print-architecture).deb
lintian --allow-root --fail-on error "$new" >>"$work/log" 2>&1 || die "lintian has found errors"

say "a clean Debian 12 ..."
mkdir "$root"
# From the sources of this machine's own apt; kept for a day, unpacked for each run.
clean=.cache/debian-12.tar
mkdir -p .cache
if [ -z "$(find "$clean" -mtime -1 2>/dev/null)" ]; then
	mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,docker.io,iptables bookworm "$work/root.tar" >>"$work/log" 2>&1 ||
		cannot "no Debian 12 could be made"
	mv "$work/root.tar" "$clean"
fi
tar -C "$root" -xf "$clean"
: >"$root/etc/machine-id"
install -m 644 -t "$root/srv" "$old" "$new"

unshare -m --propagation private systemd-nspawn -q --register=no --keep-unit -D "$root" --machine="carma-$$" --boot --console=pipe \
	--capability=all --private-network --system-call-filter="@keyring bpf" </dev/null >"$work/boot.log" 2>&1 &
nspawn=$!
for _ in $(seq 100); do
	machine=$(ps --ppid "$nspawn" -o pid=,comm= | awk '$2 == "systemd" { print $1 }') || true
	[ -z "$machine" ] || break
	sleep 0.2
done
[ -n "$machine" ] || { cat "$work/boot.log" >&2; cannot "systemd does not start"; }
(until_ systemctl is-system-running) || cannot "systemd does not come up"
for group in . pids devices memory cpuset cpu freezer cpuacct blkio; do # for Docker, where they are of version 1
	in_ mount -o remount,bind,rw "/sys/fs/cgroup/$group" 2>/dev/null || true
done
(until_ docker info) || cannot "Docker does not come up within systemd-nspawn"
tar -C bin -c simtask | nsenter -t "$machine" -a docker import -c 'ENTRYPOINT ["/simtask"]' - carma/simtask:latest >/dev/null

. test/package_steps.sh
steps
daemon_image "$work/2"
rpm_package "$work/2"
say "ok"
