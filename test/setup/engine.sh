#!/usr/bin/env bash
# A Docker engine for the demo and the tests. If none is installed, it installs Debian's
# packages; if none runs, it starts one, and stops that one again. An engine that ran
# before is used and not changed.
#
#   engine.sh up           make sure an engine answers, and leave it running
#   engine.sh down         stop the engine if this script started it
#   engine.sh run CMD...   up, CMD, down; exits with CMD's status. Runs may overlap,
#                          also of several clones: the last one stops the engine
#   engine.sh cli          print the path of a docker CLI that reaches the engine
#
# If no engine can be started, it says what to do and exits with 2.
#
# DOCKER_HOST            the engine's address, unix:///var/run/docker.sock if unset
# CARMA_DOCKERD_ARGS     more arguments for a dockerd that it starts
# CARMA_ENGINE_DIR       log and state; if unset, the log is in the project's .cache/engine,
#                        and the state of the default engine in /run/carma-engine
set -euo pipefail

cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # dockerd and iptables; a plain root shell may lack them

default_host=unix:///var/run/docker.sock
export DOCKER_HOST=${DOCKER_HOST:-$default_host}
dockerd_args=${CARMA_DOCKERD_ARGS:-}
dir=${CARMA_ENGINE_DIR:-$PWD/.cache/engine}
log=$dir/dockerd.log
# The state is the machine's where the engine is, so that a run in one clone does not stop
# the engine under a run in another.
state=$dir
if [ -z "${CARMA_ENGINE_DIR:-}" ] && [ "$(id -u)" = 0 ] && [ "$DOCKER_HOST" = "$default_host" ]; then
	state=/run/carma-engine
fi
started=$state/started # the engine that it started: "systemd UNIT INVOCATION" or "pid PID START-TIME"
keep=$state/keep       # if this exists, the engine stays up after the last run
packages='docker.io containerd runc iptables'

say() { printf 'engine: %s\n' "$*" >&2; }
die() {
	say "$@"
	exit 2
}

# ---- look ----

# cli prints the first docker CLI that gets an answer. A very new one in PATH may
# refuse to talk to the engine of Debian's packages.
cli() {
	local c
	case $DOCKER_HOST in
	unix://*) [ -S "${DOCKER_HOST#unix://}" ] || return 1 ;;
	esac
	while read -r c; do
		if [ -x "$c" ] && timeout 20 "$c" version --format '{{.Server.Version}}' >/dev/null 2>&1; then
			printf '%s\n' "$c"
			return
		fi
	done < <(type -ap docker || true; printf '%s\n' /usr/bin/docker /usr/local/bin/docker)
	return 1
}

comm() { cat "/proc/$1/comm" 2>/dev/null || true; }
alive() { # and is no zombie: some init processes do not reap
	local stat
	stat=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ "${stat%% *}" != Z ]
}
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

is_default() { [ "$DOCKER_HOST" = "$default_host" ] && [ -z "$dockerd_args" ]; }
has_systemd() { [ -d /run/systemd/system ]; }
has_package() { [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) == *'Candidate: '[!\(]* ]]; }
has_cli() { type -ap docker >/dev/null || [ -x /usr/bin/docker ]; }

# daemon_starting prints the process id of the machine's own dockerd, which may not
# answer yet.
daemon_starting() {
	local f
	is_default || return 1
	for f in /var/run/docker.pid /var/run/docker-ssd.pid; do # the second: Debian's init script
		if [ "$(comm "$(cat $f 2>/dev/null)")" = dockerd ]; then
			cat $f
			return
		fi
	done
	return 1
}

# await_answer SECONDS [PID] waits until an engine answers. It gives up early if process PID is gone.
await_answer() {
	local end=$((SECONDS + $1))
	while ! cli >/dev/null; do
		if [ -n "${2:-}" ] && ! alive "$2"; then return 1; fi
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}

# ---- install ----

apt() {
	DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get -qq -y -o DPkg::Lock::Timeout=300 \
		-o Dpkg::Options::=--force-confold -o APT::Get::AutomaticRemove=false \
		"$@" </dev/null 8>&- 9>&- >>"$dir/apt.log" 2>&1
}

install_engine() {
	local want=$packages why='no Docker Engine here'
	if command -v dockerd >/dev/null; then
		if has_cli; then return; fi
		want='' why='no docker command here'
	fi
	command -v apt-get >/dev/null ||
		die "$why, and no apt-get to install one: install Docker Engine yourself (on Debian: docker.io containerd runc iptables) and run this again"
	[ "$(id -u)" = 0 ] ||
		die "$why: as root, run: apt-get update && apt-get install -y --no-install-recommends $packages"

	: >"$dir/apt.log"
	say "updating apt's package lists ..."
	apt update || say "apt-get update had errors (see $dir/apt.log); going on with the lists at hand"
	# Since Debian 13 the docker command has its own package.
	if has_package docker-cli; then want="$want docker-cli"; fi
	if [ "$(cat /sys/module/apparmor/parameters/enabled 2>/dev/null)" = Y ] && ! command -v apparmor_parser >/dev/null; then
		want="$want apparmor" # with AppArmor in the kernel, no container starts without its parser
	fi
	if [ -z "$want" ]; then want=docker.io; fi
	say "installing ${want# } from Debian's packages ..."
	# shellcheck disable=SC2086 # a list
	if ! apt install --no-install-recommends $want; then
		tail -n 15 "$dir/apt.log" >&2
		if ! command -v dockerd >/dev/null || ! has_cli; then
			die "apt-get could not install it (above, the end of $dir/apt.log): put apt right, or install $want yourself, and run this again"
		fi
		say "apt-get ended with an error (above), but dockerd is there: going on with it"
	fi
	hash -r
	sleep 1 # the package may have started its dockerd
}

# ---- start ----

# mount_cgroups mounts control groups for dockerd if no init system has.
mount_cgroups() {
	local name _
	if grep -qE '^[^ ]+ [^ ]+ cgroup2? ' /proc/mounts || [ ! -d /sys/fs/cgroup ]; then return; fi
	say "mounting the control groups on /sys/fs/cgroup (nothing had) ..."
	if mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null; then
		if grep -qw memory /sys/fs/cgroup/cgroup.controllers; then return; fi
		umount /sys/fs/cgroup || return 0
	fi
	mount -t tmpfs -o mode=755,size=1m tmpfs /sys/fs/cgroup || return 0
	while read -r name _; do
		case $name in
		cpu | cpuacct | cpuset | memory | devices | freezer | blkio | pids)
			mkdir -p "/sys/fs/cgroup/$name"
			mount -t cgroup -o "$name" cgroup "/sys/fs/cgroup/$name" || true
			;;
		esac
	done </proc/cgroups
	# The named hierarchies of this process: without them containerd sees no OOM kills.
	while IFS=: read -r _ name _; do
		case $name in
		name=?*)
			mkdir -p "/sys/fs/cgroup/${name#name=}"
			mount -t cgroup -o "none,$name" cgroup "/sys/fs/cgroup/${name#name=}" || true
			;;
		esac
	done </proc/self/cgroup
}

# drop_stale_pids removes old pid files. After an unclean reboot their pids may belong to
# other processes, and dockerd would believe that it, or its containerd, runs.
drop_stale_pids() {
	local f p
	for f in /var/run/docker.pid /var/run/docker/containerd/containerd.pid; do
		p=$(cat "$f" 2>/dev/null) || continue
		case $(comm "$p") in
		dockerd | containerd) ;;
		*) rm -f "$f" ;;
		esac
	done
}

# record notes which engine was started, and which instance: this script must not stop a later one.
record() {
	rm -f "$keep"
	case $1 in
	systemd) printf 'systemd docker.service %s\n' "$(invocation)" ;;
	*) printf 'pid %s %s\n' "$1" "$(start_time "$1")" ;;
	esac >"$started"
}
invocation() { systemctl show -p InvocationID --value docker.service; }

not_started() {
	local last hint='put that right'
	last=$(grep -v 'level=info' "$log" | tail -n 10 | cut -c1-400) || true
	printf '%s\n' "$last" >&2
	case $(tail -n 1 <<<"$last") in
	*[Ii]ptables* | *nftables*) hint="$hint (install iptables; where the kernel has none, set CARMA_DOCKERD_ARGS=--iptables=false)" ;;
	*cgroup*) hint="$hint (it needs control groups under /sys/fs/cgroup)" ;;
	*'not permitted'* | *'ermission denied'*) hint="$hint (inside a container it needs a privileged one)" ;;
	esac
	die "dockerd did not start (above, the end of $log): $hint and run this again"
}

start_engine() {
	local pid
	[ "$(id -u)" = 0 ] || {
		if [ -S "${DOCKER_HOST#unix://}" ] && [ ! -w "${DOCKER_HOST#unix://}" ]; then
			die "$(id -un) may not use ${DOCKER_HOST#unix://}: as root, run: usermod -aG docker $(id -un), then log in anew"
		fi
		die "no Docker engine runs, and only root can start one: as root, run: systemctl start docker (without systemd: dockerd)"
	}
	if has_systemd && is_default; then
		say "starting docker.service ..."
		if systemctl start docker.service >"$log" 2>&1 8>&- 9>&- && await_answer 60; then
			record systemd
			return
		fi
		journalctl -n 20 --no-pager -u docker.service >>"$log" 2>&1 || true
		not_started
	fi
	mount_cgroups
	drop_stale_pids
	if [ "$DOCKER_HOST" != "$default_host" ]; then
		dockerd_args="--host $DOCKER_HOST $dockerd_args"
	fi
	say "starting dockerd in the background, log in $log ..."
	# In a session of its own, so that the engine outlives make and its terminal.
	# shellcheck disable=SC2086 # a list of arguments
	setsid dockerd $dockerd_args </dev/null >"$log" 2>&1 8>&- 9>&- &
	pid=$!
	if ! await_answer 60 "$pid"; then
		if alive "$pid"; then echo "no docker command got an answer from it for 60 s" >>"$log"; fi
		stop_pid "$pid"
		not_started
	fi
	record "$pid"
}

up() {
	local was
	case $DOCKER_HOST in
	unix://*) ;;
	*) cli >/dev/null || die "nothing answers at DOCKER_HOST=$DOCKER_HOST: start that engine, or unset DOCKER_HOST to have one started here" ;;
	esac
	exec 9>"$state/up.lock"
	flock 9
	if ! cli >/dev/null; then
		was=false
		if daemon_starting >/dev/null; then was=true; fi
		install_engine
		if daemon_starting >/dev/null || { has_systemd && is_default && systemctl -q is-active docker.service; }; then
			# It runs already: somebody else's, or the package's start script has just started it.
			await_answer 60 || true
			if ! $was && cli >/dev/null; then
				if has_systemd; then record systemd; else record "$(daemon_starting)"; fi
			fi
		fi
		if ! cli >/dev/null; then start_engine; fi
	fi
	exec 9>&-
}

# ---- stop ----

# stop_pid ends a dockerd with its containers and its containerd.
stop_pid() {
	local i
	kill "$1" 2>/dev/null || return 0
	for i in $(seq 300); do
		alive "$1" || return 0
		if [ "$i" = 200 ]; then kill -KILL "$1" 2>/dev/null || true; fi
		sleep 0.1
	done
}

down() {
	local kind pid since
	[ -e "$started" ] || return 0
	read -r kind pid since <"$started" || true
	case $kind in
	# The socket unit is stopped too: it would start the service again at the next connection.
	systemd) if [ "$(invocation)" = "$since" ]; then systemctl stop docker.socket docker.service 2>/dev/null || true; fi ;;
	pid) if [ "$(comm "$pid")" = dockerd ] && [ "$(start_time "$pid")" = "$since" ]; then stop_pid "$pid"; fi ;;
	esac
	rm -f "$started" "$keep"
}

# run_done ends one run's use of the engine. It prints nothing: the last lines should be CMD's.
run_done() {
	if flock -n -x 8 && [ ! -e "$keep" ]; then down; fi
}

case ${1:-} in
up | down | run) mkdir -p "$dir" "$state" ;;
esac
case ${1:-} in
up)
	up
	if [ -e "$started" ]; then : >"$keep"; fi
	docker=$(cli)
	say "version $("$docker" version --format '{{.Server.Version}}') answers at $DOCKER_HOST"
	;;
down)
	if [ -e "$started" ]; then
		down
		say "stopped"
	fi
	;;
cli)
	cli || die "no Docker engine answers at $DOCKER_HOST: run make engine"
	;;
run)
	shift
	exec 8>"$state/users.lock"
	flock -s 8
	trap run_done EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	up
	DOCKER=$(cli)
	export DOCKER
	if [ "$(command -v docker || true)" != "$DOCKER" ]; then
		mkdir -p "$dir/bin" && ln -sf "$DOCKER" "$dir/bin/docker"
		PATH=$dir/bin:$PATH
	fi
	"$@" 8>&-
	;;
*)
	sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
	exit 64
	;;
esac
