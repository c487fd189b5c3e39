#!/usr/bin/env bash
# Builds the packages of this commit twice, in two folders, and compares them byte by byte.
#
#   test/release.sh OUT         keeps the first build in OUT
#   COLD=1 test/release.sh OUT  compiles everything anew for the second (many minutes)
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cmd/release.sh "$out" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

# The second: the same files in a folder of another length, by another umask and zone.
mkdir "$work/another-longer-name-of-a-folder"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -a --parents -t "$work/another-longer-name-of-a-folder" 2>/dev/null || true
VERSION=${VERSION:-$(cmd/version.sh)} SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH
[ -z "${COLD-}" ] || export GOCACHE=$work/cache
(umask 077 && export TZ=Asia/Tokyo && "$work/another-longer-name-of-a-folder/cmd/release.sh" "$work/second") >"$work/log" 2>&1 ||
	{ cat "$work/log" >&2; exit 1; }
cmp "$out/SHA256SUMS" "$work/second/SHA256SUMS" || {
	diff "$out/SHA256SUMS" "$work/second/SHA256SUMS" || true
	echo "release: two builds of the same files differ, see above" >&2
	exit 1
}
(cd "$work/second" && sha256sum -c --quiet SHA256SUMS)
echo "release: two builds in two folders are equal; $(wc -l <"$out/SHA256SUMS") files in $out"
