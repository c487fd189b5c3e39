#!/usr/bin/env bash
# Puts ONNX Runtime's library, from npm's package onnxruntime-node, into the folder where carma finds it.
set -euo pipefail

version=1.30.0
case $(uname -m) in
x86_64) arch=x64 sum=ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23 ;;
aarch64) arch=arm64 sum=1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76 ;;
*) echo "onnxruntime: no library for $(uname -m) in npm's package" >&2; exit 2 ;;
esac
dir=${XDG_CACHE_HOME:-$HOME/.cache}/carma/onnxruntime
file=$dir/libonnxruntime.so.1

good() { echo "$sum  $1" | sha256sum --check --status 2>/dev/null; }
if good "$file"; then
	echo "onnxruntime: $version in $dir"
	exit
fi
command -v npm >/dev/null || {
	echo "onnxruntime: no npm in PATH; install it (apt-get install npm), or: pip install onnxruntime" >&2
	exit 2
}
mkdir -p "$dir"
tmp=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
inside=package/bin/napi-v6/linux/$arch/libonnxruntime.so.1
(cd "$tmp" && npm pack --silent "onnxruntime-node@$version" >/dev/null && tar -xzf ./*.tgz "$inside")
good "$tmp/$inside" || { echo "onnxruntime: the library in the package is not the one expected" >&2; exit 1; }
mv "$tmp/$inside" "$file"
echo "onnxruntime: $version put into $dir"
