#!/usr/bin/env bash
# Runs every fuzz target of the project for a while each: go test takes one at a time.
#
#   fuzz.sh [TIME]    TIME as in -fuzztime, 10s if not given
set -euo pipefail

cd "$(dirname "$0")/../.."
time=${1:-10s}

# A package's targets come before its "ok PACKAGE SECONDS".
list=$(go test -list '^Fuzz' ./...)
targets=() count=0
while read -r word package _; do
	case $word in
	Fuzz*) targets+=("$word") ;;
	ok)
		for target in ${targets[@]+"${targets[@]}"}; do
			echo "fuzz: $package $target for $time"
			go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
			count=$((count + 1))
		done
		targets=()
		;;
	esac
done <<<"$list"
echo "fuzz: $count targets, no failure"
