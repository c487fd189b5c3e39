#!/bin/sh
# Prints carma's version: the topmost heading of CHANGELOG.md, and for a commit that has no
# such tag (v1.2.3) its time and name too, in a form that Debian and RPM sort below it.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)
[ -n "$version" ] || { echo "cmd/version.sh: CHANGELOG.md has no heading like: ## 1.2.3" >&2; exit 1; }
commit=$(git rev-parse --short=8 HEAD 2>/dev/null) || { echo "$version~dev"; exit; }
if ! git diff-index --quiet HEAD -- 2>/dev/null; then
	echo "$version~$(TZ=UTC0 git log -1 --date=format-local:%Y%m%d.%H%M%S --format=%cd).g$commit.dirty"
elif [ "$(git describe --exact-match --tags --match "v$version" 2>/dev/null)" = "v$version" ]; then
	echo "$version"
else
	echo "$version~$(TZ=UTC0 git log -1 --date=format-local:%Y%m%d.%H%M%S --format=%cd).g$commit"
fi
