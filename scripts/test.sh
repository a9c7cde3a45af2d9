#!/usr/bin/env bash
# Every test: installs what is needed, builds, makes the fixtures and runs ctest, whose verdict is the last thing
# printed. Arguments go to ctest (for example: scripts/test.sh -R checkpoint).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh all check_headers

for model in smollm2-135m gemma3-270m qwen2.5-coder-0.5b; do
  scripts/fetch_model.sh "$model"
done

# Tiny checkpoints: made again only when their generator changed.
generator=tools/fixtures/make_tiny_models.py
if ! cmp --silent "$generator" build/fixtures/tiny.made_by; then
  echo "==> Making the tiny checkpoints"
  python3 "$generator" build/fixtures/tiny
  cp "$generator" build/fixtures/tiny.made_by
fi

echo "==> Running the tests"
exec ctest --test-dir build/release --output-on-failure --no-tests=error --parallel "$(nproc)" "$@"
