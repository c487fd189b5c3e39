#!/usr/bin/env bash
# Writes the documentation as a site that needs neither a server nor a network:
# cmd/docs.sh FOLDER VERSION. Sphinx makes the pages; Swagger UI shows the API.
set -euo pipefail

out=$1 version=$2
cd "$(dirname "$0")/.."
for program in sphinx-build npm; do
	command -v $program >/dev/null || {
		echo "docs: no $program in PATH; install it (apt-get install python3-sphinx python3-myst-parser python3-sphinx-rtd-theme npm)" >&2
		exit 2
	}
done
rm -rf "$out"
sphinx-build -q -W --keep-going -b html -c docs -d .cache/docs -D version="$version" . "$out"
cp "$out/README.html" "$out/index.html"
cp docs/page-*.png "$out/docs/" # README names them in HTML, which Sphinx leaves as it is
{ printf 'const openapi = '; "${GO:-go}" run ./cmd/openapi; } >"$out/openapi.js"

ui=swagger-ui-dist@5.35.0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$tmp" && npm pack --silent "$ui" >/dev/null && tar -xzf ./*.tgz)
cp "$tmp"/package/{LICENSE,NOTICE,swagger-ui.css,swagger-ui-bundle.js} "$out/"
echo "the documentation is in $out/index.html"
