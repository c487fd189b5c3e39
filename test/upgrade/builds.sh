#!/bin/sh
# Builds the programs of test/upgrade_test.go, each once, and prints "NAME=PATH" of each:
# those of some commits, and two that come after this one. The first of these notes a
# feature for what it adds to the journal, the second forgets it.
#
#   test/upgrade/builds.sh 3f37614 v0.1.0
set -eu
repo=$(cd "$(dirname "$0")/../.." && pwd)
cache=$repo/.cache/builds
export CGO_LDFLAGS="-O2 -g -Wl,-z,lazy" CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" GOFLAGS="-buildvcs=false -trimpath"

# build FOLDER VERSION OUT [FLAG...]
build() {
	(
		cd "$1"
		version=$2 out=$3
		shift 3
		go build "$@" -ldflags "-X main.version=$version" -o "$out/carma" ./cmd/carma
		CGO_ENABLED=0 go build -o "$out/carma-init" ./cmd/carma-init
	) >&2
}

for commit; do
	hash=$(git -C "$repo" rev-parse --short=7 "$commit^{commit}")
	out=$cache/$hash
	if ! [ -x "$out/carma" ] || ! [ -x "$out/carma-init" ]; then
		[ -d "$out/src" ] || { mkdir -p "$out/src"; git -C "$repo" archive "$hash" | tar -xC "$out/src"; }
		build "$out/src" "$hash" "$out"
	fi
	echo "$commit=$out/carma"
done

# What comes after this program: a suspend has one more field.
later=$cache/later
mkdir -p "$later/declared" "$later/forgotten"
sed 's/^\tBy   string        `json:"by,omitempty"`$/&\n\tGrace int `json:"grace"`/' "$repo/mapper/suspension.go" >"$later/suspension.go"
sed 's/^var features = .*/var features = []Feature{{"graceful suspend", []string{"mapper.SuspendAsked.grace"}}}/' "$repo/runner/journal/features.go" >"$later/features.go"
grep -q '"grace"' "$later/suspension.go" && grep -q 'graceful suspend' "$later/features.go" || {
	echo "test/upgrade/builds.sh: the sources have changed, and so must this script" >&2
	exit 1
}
changed='"%s/mapper/suspension.go": "%s/suspension.go"'
printf "{\"Replace\": {$changed, \"%s/runner/journal/features.go\": \"%s/features.go\"}}" "$repo" "$later" "$repo" "$later" >"$later/declared.json"
printf "{\"Replace\": {$changed}}" "$repo" "$later" >"$later/forgotten.json"
for how in declared forgotten; do
	build "$repo" 9.9.9 "$later/$how" -overlay "$later/$how.json"
	echo "later-$how=$later/$how/carma"
done
