#!/bin/sh
# Writes the image carma/daemon:VERSION, made from nothing: carma-kubernetes under the
# name carma, carma-agent, carma-init, the C library that they are linked with, and the machine's
# certificates. docker load reads it. Needs no engine; equal files give an equal image.
#
#   VERSION=1.2.3 SOURCE_DATE_EPOCH=SECONDS image.sh FOLDER-OF-PROGRAMS OUT.tar
set -eu
programs=$1
out=$2
: "${VERSION:?}" "${SOURCE_DATE_EPOCH:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
umask 022

pack() { # FOLDER FILE.tar NAME...
	folder=$1 file=$2
	shift 2
	tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=ustar -cf "$file" "$@"
}

root=$work/root
mkdir -p "$root/usr/lib/carma" "$root/usr/bin" "$root/etc/ssl/certs" "$root/etc/carma" "$root/run/carma" "$root/var/lib/carma" "$root/tmp"
chmod 1777 "$root/tmp"
install -m 755 "$programs/carma-kubernetes" "$root/usr/lib/carma/carma"
install -m 755 "$programs/carma-agent" "$programs/carma-init" "$root/usr/lib/carma/"
ln -s ../lib/carma/carma "$root/usr/bin/carma"
for library in $(for program in carma-kubernetes carma-agent; do ldd "$programs/$program"; done | grep -o '/[^ ]*' | sort -u); do
	mkdir -p "$root$(dirname "$library")"
	cp -L "$library" "$root$library"
done
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'root:x:0:0:root:/:/none' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo 'passwd: files
group: files
hosts: files dns' >"$root/etc/nsswitch.conf"

mkdir "$work/image"
pack "$root" "$work/image/layer.tar" .
layer=$(sha256sum "$work/image/layer.tar" | cut -d' ' -f1)
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
arch=$("${GO:-go}" env GOARCH)
tag=$(printf %s "$VERSION" | tr '~+' '--') # signs that a tag must not have
cat >"$work/image/config.json" <<EOF
{"architecture":"$arch","os":"linux","created":"$created","config":{"Entrypoint":["/usr/bin/carma"],"Cmd":["daemon"],"Env":["PATH=/usr/bin","NVIDIA_VISIBLE_DEVICES=all","NVIDIA_DRIVER_CAPABILITIES=utility"]},"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]},"history":[{"created":"$created","created_by":"images/carma/image.sh"}]}
EOF
cat >"$work/image/manifest.json" <<EOF
[{"Config":"config.json","RepoTags":["carma/daemon:$tag","carma/daemon:latest"],"Layers":["layer.tar"]}]
EOF
pack "$work/image" "$out" manifest.json config.json layer.tar
