#!/usr/bin/env bash
# go vet, the vocabulary and the short tests of the packages that differ from a commit
# (BASE, by default the one before this branch's last), and of the packages that import
# them. make quick runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${BASE:-HEAD~1}
mapfile -t folders < <(
	{
		git diff --name-only "$base" -- '*.go'
		git ls-files --others --exclude-standard -- '*.go'
	} | grep -vE '^(containers/kubernetes|test/lab)/' | xargs -r -n1 dirname | sort -u | while read -r d; do
		compgen -G "$d/*.go" >/dev/null && echo "./$d" || true
	done
)
if [ ${#folders[@]} = 0 ]; then
	echo "quick: no Go file differs from $base; set BASE to another commit"
	exit 0
fi
go vet "${folders[@]}"
go test ./test -run '^Test(Vocabulary|Glossary|Limits|Imports|Tour|Duties)$'

# The changed packages, and what imports them, also in tests, directly.
mapfile -t changed < <(go list "${folders[@]}")
pattern=$(printf '%s\n' "${changed[@]}" | paste -sd'|')
mapfile -t packages < <(
	{
		printf '%s\n' "${changed[@]}"
		go list -f '{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}' ./... |
			grep -E " ($pattern)( |\$)" | cut -d' ' -f1
	} | sort -u | grep -vx carma/test
)
echo "quick: ${#changed[@]} packages differ from $base, with those that import them ${#packages[@]}"
go test -short "${packages[@]}"
