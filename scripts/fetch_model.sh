#!/usr/bin/env bash
# Fetches a real model and leaves its checkpoint in build/models/NAME/checkpoint. What is there is not made again.
#   scripts/fetch_model.sh smollm2-135m|gemma3-270m|qwen2.5-coder-0.5b
# PLOW_CACHE (default: build/cache) keeps what was downloaded.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  smollm2-135m | gemma3-270m | qwen2.5-coder-0.5b) ;;
  *)
    echo "usage: scripts/fetch_model.sh smollm2-135m|gemma3-270m|qwen2.5-coder-0.5b" >&2
    exit 2
    ;;
esac

scripts/install_packages.sh

# The environment is made anew when the list of its packages changes.
requirements=tools/fixtures/requirements.txt
if ! cmp --silent "$requirements" build/venv/requirements.txt; then
  echo "==> Making the Python environment build/venv"
  rm -rf build/venv
  mkdir -p build
  python3 -m venv build/venv
  if ! build/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --requirement "$requirements"; then
    echo "fetch_model.sh: cannot install $requirements (pip's message is above);" \
      "check the network and run the command again" >&2
    exit 1
  fi
  cp "$requirements" build/venv/requirements.txt
fi

echo "==> Fetching $1"
mkdir -p "build/models/$1"
exec build/venv/bin/python tools/fixtures/gguf_to_hf.py "$1" "build/models/$1/checkpoint" \
  --cache "${PLOW_CACHE:-build/cache}"
