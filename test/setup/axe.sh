#!/usr/bin/env bash
# Puts axe-core, npm's package of that name, which checks pages for those who cannot see
# or use a mouse, where the browser tests find it.
set -euo pipefail

version=4.14.1
sum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
dir=${XDG_CACHE_HOME:-$HOME/.cache}/carma/axe
file=$dir/axe.min.js

good() { echo "$sum  $1" | sha256sum --check --status 2>/dev/null; }
if good "$file"; then
	echo "axe: $version in $dir"
	exit
fi
command -v npm >/dev/null || {
	echo "axe: no npm in PATH; install it (apt-get install npm)" >&2
	exit 2
}
mkdir -p "$dir"
tmp=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
(cd "$tmp" && npm pack --silent "axe-core@$version" >/dev/null && tar -xzf ./*.tgz package/axe.min.js)
good "$tmp/package/axe.min.js" || { echo "axe: the file in the package is not the one expected" >&2; exit 1; }
mv "$tmp/package/axe.min.js" "$file"
echo "axe: $version put into $dir"
