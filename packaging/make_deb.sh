#!/bin/bash
# Makes a Debian package of what was built: packaging/make_deb.sh BUILD_FOLDER OUT.deb
# Needs dpkg-dev (dpkg-shlibdeps finds the libraries that the programs need).
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: $0 BUILD_FOLDER OUT.deb" >&2
  exit 2
fi
build=$(realpath "$1")
out=$(realpath -m "$2")
source=$(realpath "$(dirname "$0")/..")
for program in plowc plowrt plow_verify; do
  if [ ! -x "$build/bin/$program" ]; then
    echo "$0: $build/bin/$program is not there. Build it first: ninja -C $build plowc plowrt" >&2
    exit 3
  fi
done
version=$("$build/bin/plowrt" --version | cut -d' ' -f2)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
install -D -t "$root/usr/bin" "$build/bin/plowc" "$build/bin/plowrt" "$build/bin/plow_verify"
strip "$root/usr/bin/"*
install -D -m 644 -t "$root/lib/systemd/system" "$source/packaging/plowrt.service"
install -D -m 644 -t "$root/etc/plow" "$source/packaging/plow.toml"
install -D -m 644 -t "$root/usr/share/doc/plow" "$source/README.md" "$source/packaging/grafana.json"
install -D -m 644 "$source/LICENSE" "$root/usr/share/doc/plow/copyright"
install -d "$root/usr/share/bash-completion/completions" "$root/usr/share/fish/vendor_completions.d"
"$build/bin/plowrt" completion bash > "$root/usr/share/bash-completion/completions/plowrt"
"$build/bin/plowrt" completion fish > "$root/usr/share/fish/vendor_completions.d/plowrt.fish"
mkdir -p "$work/debian" "$root/DEBIAN"
printf 'Source: plow\n\nPackage: plow\nArchitecture: any\n' > "$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O root/usr/bin/* 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
cat > "$root/DEBIAN/control" <<END
Package: plow
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: plow's makers <plow@localhost>
Depends: $depends
Section: science
Priority: optional
Installed-Size: $(du -sk "$root" | cut -f1)
Description: compiler and server for language models
 plowc compiles a checkpoint ahead of time into a bundle of fixed-size packets;
 plowrt runs it, in the terminal or behind HTTP.
END
echo /etc/plow/plow.toml > "$root/DEBIAN/conffiles"
# The same build gives the same package.
find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0} dpkg-deb --root-owner-group -b "$root" "$out" > /dev/null
echo "$out: plow $version"
