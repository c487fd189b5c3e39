#!/bin/sh
# Writes the licence texts of all that is linked into the programs: the modules
# of the packages below and of those for Kubernetes, of embedded files, and Go itself. It
# fails if one of them has none.
#
#   cmd/licenses.sh OUTPUT PACKAGE...
set -eu
out=$1
shift
go=${GO:-go}
trap 'rm -f "$out.part" "$out.modules"' EXIT
modules='{{with .Module}}{{if .Version}}{{if not .Replace}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}{{end}}'
"$go" list -deps -f "$modules" "$@" >"$out.modules"
"$go" list -C containers/kubernetes -deps -f "$modules" ./cmd/... >>"$out.modules"
exec 3>"$out.part"
echo "carma is linked with these modules. Each has its own licence, which follows its name." >&3
sort -u "$out.modules" >"$out.part.sorted"
mv "$out.part.sorted" "$out.modules"
while read -r path version dir; do
	printf '\n==== %s %s\n' "$path" "$version" >&3
	found=
	for text in "$dir"/[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* "$dir"/COPYING* "$dir"/NOTICE*; do
		[ -f "$text" ] || continue
		found=1
		printf '\n---- %s\n\n' "${text##*/}" >&3
		cat "$text" >&3
	done
	if [ -z "$found" ]; then
		echo "cmd/licenses.sh: $path $version has no licence text; link it no more, or ask its authors" >&2
		exit 1
	fi
done <"$out.modules"
# Files of others that are embedded.
for text in "$(dirname "$0")"/../runner/web/look/files/others/*.LICENSE.txt; do
	printf '\n==== %s\n\n' "$(head -n 1 "$text")" >&3
	tail -n +3 "$text" >&3
done
printf '\n==== Go %s\n\n' "$("$go" env GOVERSION)" >&3
cat "$("$go" env GOROOT)/LICENSE" >&3
mv "$out.part" "$out"
