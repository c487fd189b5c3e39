#!/usr/bin/env bash
# Runs each fuzz target of the project for some time. go test itself runs only one at a time.
#
#   fuzz.sh [TIME]    TIME as in -fuzztime, 10s if not given
set -euo pipefail

cd "$(dirname "$0")/../.."
time=${1:-10s}

# The targets of a package come before its line "ok PACKAGE SECONDS".
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
