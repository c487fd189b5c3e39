#!/bin/sh
# Plays `nvidia-smi memory-limits` and `nvidia-smi --version`; see standin.go.
dir='@DIR@' root='@ROOT@' version='@VERSION@'

fail() {
	echo "$1"
	exit 2
}

if [ "$1" = --version ]; then
	printf 'NVIDIA-SMI version  : %s\nNVML version        : %s\nDRIVER version      : %s\nCUDA Version        : 13.4\n' \
		"$version" "${version%.*}" "$version"
	exit 0
fi
[ "$1" = memory-limits ] || fail "Option $1 is not recognized"
[ "${version%%.*}" -ge 615 ] || fail "Option memory-limits is not recognized"
shift

do='' group='' gpu='' soft='' hard=''
while [ $# -gt 0 ]; do
	case "$1" in
	--help) echo "Usage: nvidia-smi memory-limits"; exit 0 ;;
	--set | --get) do=$1; shift; continue ;;
	--namespace | -n) group=$2 ;;
	--soft-limit) soft=$2 ;;
	--hard-limit) hard=$2 ;;
	-i) gpu=$2 ;;
	*) fail "Option $1 is not recognized" ;;
	esac
	shift 2 || fail "an option has no value"
done
[ -n "$do" ] && [ -n "$group" ] && [ -n "$gpu" ] || fail "an option is missing"
case "$group" in /sys/fs/cgroup/*) ;; *) fail "$group is not the full path of a group" ;; esac
[ -d "$root$group" ] || fail "Not Found"

state="$dir/limit.$gpu.$(echo "$group" | tr / _)"
old=0 oldhard=max
[ -f "$state" ] && read -r old oldhard <"$state"
if [ "$do" = --get ]; then
	for pair in "soft $old" "hard $oldhard"; do
		case "$pair" in
		*max) echo "${pair% *} limit: max" ;;
		*) echo "${pair% *} limit: ${pair#* } MiB" ;;
		esac
	done
	echo "current used: 0 MiB"
	exit 0
fi

[ ! -f "$dir/broken" ] || fail "Unable to set memory limits: Unknown Error"
case "$soft" in '' | *[!0-9]*) fail "invalid soft limit $soft" ;; esac
case "$hard" in
max) ;;
'' | *[!0-9]*) fail "invalid hard limit $hard" ;;
*) [ "$soft" -le "$hard" ] || fail "the soft limit is above the hard one" ;;
esac
echo "$soft $hard" >"$state"
sum=0
[ -f "$dir/reserved.$gpu" ] && read -r sum <"$dir/reserved.$gpu"
echo $((sum + soft - old)) >"$dir/reserved.$gpu"
echo "set $gpu ${group##*/} $soft $hard" >>"$dir/calls"
