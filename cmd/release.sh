#!/bin/sh
# Builds all that is published of carma into a folder: .deb, .rpm, the daemon's image, the
# list of what is linked in (SPDX), the changes, and checksums. The same commit gives the
# same bytes, wherever it is built with the same Go, C compiler and libc.
#
#   cmd/release.sh FOLDER
set -eu
cd "$(dirname "$0")/.."
out=$1
go=${GO:-go}
mkdir -p "$out"
out=$(cd "$out" && pwd)
VERSION=${VERSION:-$(cmd/version.sh)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
ARCH=$("$go" env GOARCH)
ROOT=$(mktemp -d)
trap 'rm -rf "$ROOT"' EXIT
export VERSION SOURCE_DATE_EPOCH ARCH ROOT LC_ALL=C TZ=UTC0
# As in the Makefile, which says why.
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g -Wno-deprecated-declarations}" CGO_LDFLAGS="${CGO_LDFLAGS:--O2 -g -Wl,-z,lazy}"
export GOFLAGS=-buildvcs=false
umask 022

programs=$ROOT/usr/lib/carma
doc=$ROOT/usr/share/doc/carma
mkdir -p "$programs" "$doc" "$ROOT/usr/share/bash-completion/completions" \
	"$ROOT/usr/share/zsh/vendor-completions" "$ROOT/usr/share/fish/vendor_completions.d"
"$go" build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o "$programs/carma" ./cmd/carma
"$go" build -C containers/kubernetes -trimpath -ldflags "-s -w -X main.version=$VERSION" -o "$programs/carma-kubernetes" ./cmd/carma-kubernetes
"$go" build -C containers/kubernetes -trimpath -tags grpcnotrace -ldflags "-s -w -X main.version=$VERSION" -o "$programs/carma-agent" ./cmd/carma-agent
CGO_ENABLED=0 "$go" build -trimpath -ldflags "-s -w" -o "$programs/carma-init" ./cmd/carma-init

# The packages say which libc they need: 2.34, of 2021.
needs=$(objdump -T "$programs/carma" "$programs/carma-kubernetes" "$programs/carma-agent" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
if [ "$(printf '%s\nGLIBC_2.34\n' "$needs" | sort -V | tail -n 1)" != GLIBC_2.34 ]; then
	echo "cmd/release.sh: carma needs $needs, the packages promise GLIBC_2.34 (configs/package/nfpm.yaml)" >&2
	exit 1
fi

# What the programs say about themselves must not depend on who builds.
HOME=/root XDG_RUNTIME_DIR= CARMA_CONFIG= "$programs/carma" man "$ROOT/usr/share/man"
mkdir -p "$ROOT/usr/share/man/man8"
cp configs/package/carma-init.8 "$ROOT/usr/share/man/man8/"
find "$ROOT/usr/share/man" -type f -exec gzip -9n {} +
"$programs/carma" completion bash >"$ROOT/usr/share/bash-completion/completions/carma"
"$programs/carma" completion zsh >"$ROOT/usr/share/zsh/vendor-completions/_carma"
"$programs/carma" completion fish >"$ROOT/usr/share/fish/vendor_completions.d/carma.fish"

GO="$go" cmd/licenses.sh "$doc/LICENSES.txt" ./cmd/carma ./cmd/carma-init
"$go" run ./configs/package/sbom -version "$VERSION" -time "$SOURCE_DATE_EPOCH" \
	"$programs/carma" "$programs/carma-kubernetes" "$programs/carma-agent" "$programs/carma-init" >"$doc/sbom.spdx.json"
cp "$doc/sbom.spdx.json" "$out/carma-$VERSION.spdx.json"
gzip -9n "$doc/LICENSES.txt" "$doc/sbom.spdx.json"
cp NOTICE "$doc/NOTICE"
cp configs/package/copyright "$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/NEWS.md.gz"
cat >"$ROOT/changelog" <<EOF
carma ($VERSION) unstable; urgency=medium

  * All changes are in /usr/share/doc/carma/NEWS.md.gz.

 -- The carma authors <maintainers@carma.invalid>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
EOF
gzip -9nc "$ROOT/changelog" >"$doc/changelog.gz"
mkdir -p "$ROOT/usr/share/lintian/overrides"
cp configs/package/deb/lintian-overrides "$ROOT/usr/share/lintian/overrides/carma"
find "$ROOT" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

nfpm() { "$go" tool -modfile=configs/package/nfpm.mod nfpm package --config "configs/package/$1.yaml" --packager "$2" --target "$3"; }
UNITS=/lib/systemd/system nfpm nfpm deb "$out/carma_${VERSION}_$ARCH.deb"
nfpm nfpm-kubernetes deb "$out/carma-kubernetes_${VERSION}_$ARCH.deb"
mkdir -p "$ROOT/usr/share/zsh/site-functions"
mv "$ROOT/usr/share/zsh/vendor-completions/_carma" "$ROOT/usr/share/zsh/site-functions/_carma"
rm -r "$ROOT/usr/share/zsh/vendor-completions" "$ROOT/usr/share/lintian" "$doc/changelog.gz"
mkdir -p "$ROOT/usr/share/licenses/carma"
cp LICENSE "$ROOT/usr/share/licenses/carma/LICENSE"
find "$ROOT" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
UNITS=/usr/lib/systemd/system nfpm nfpm rpm "$out/carma-$VERSION.$(uname -m).rpm"
nfpm nfpm-kubernetes rpm "$out/carma-kubernetes-$VERSION.$(uname -m).rpm"

images/carma/image.sh "$programs" "$out/carma-$VERSION-image.tar"
cp CHANGELOG.md "$out/CHANGELOG.md"
(cd "$out" && sha256sum CHANGELOG.md "carma_${VERSION}_$ARCH.deb" "carma-$VERSION.$(uname -m).rpm" \
	"carma-kubernetes_${VERSION}_$ARCH.deb" "carma-kubernetes-$VERSION.$(uname -m).rpm" \
	"carma-$VERSION-image.tar" "carma-$VERSION.spdx.json" >SHA256SUMS && cat SHA256SUMS)
