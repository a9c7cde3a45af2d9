#!/usr/bin/env bash
# Installs what the build needs and builds the given targets (default: everything) into build/release.
#   scripts/build.sh [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh
mkdir -p build
echo "==> Building into build/release"
cmake --preset release -Wno-dev >build/.configure.log 2>&1 || {
  cat build/.configure.log >&2
  exit 1
}
if [[ $# == 0 ]]; then
  set -- all
fi
cmake --build build/release --target "$@"
