#!/usr/bin/env bash
# Runs clang-tidy (apt-get install clang-tidy) with the allow-list of .clang-tidy over the sources given, or over all.
#   tools/clang_tidy.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-tidy >/dev/null; then
  echo "clang_tidy.sh: clang-tidy is missing: apt-get install clang-tidy" >&2
  exit 1
fi
# The compile commands are for GCC, which knows some warning flags that clang does not.
if [[ $# == 0 ]]; then
  mapfile -t files < <(find src apps -name '*.cpp' ! -name '*_fuzz.cpp' | sort)
  set -- "${files[@]}"
fi
printf '%s\n' "$@" | xargs --max-procs "$(nproc)" --max-args 4 \
  clang-tidy --quiet -p build/release --extra-arg-before=-Wno-unknown-warning-option
