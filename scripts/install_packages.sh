#!/usr/bin/env bash
# Installs the Debian packages of scripts/packages.txt that are missing. Needs root or sudo only if one is; when all
# are there it touches neither network nor system.
set -euo pipefail
cd "$(dirname "$0")/.."

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages.sh: this is not a Debian system; install what scripts/packages.txt names by hand" >&2
  exit 1
fi

missing=()
while read -r package; do
  if ! is_installed "$package"; then
    missing+=("$package")
  fi
done <scripts/packages.txt
if [[ ${#missing[@]} == 0 ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) != 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: packages are missing and there is no sudo. As root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "==> Installing ${#missing[@]} Debian packages: ${missing[*]}"
"${as_root[@]}" apt-get update --quiet
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install --quiet --yes --no-install-recommends "${missing[@]}"
