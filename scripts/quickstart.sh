#!/usr/bin/env bash
# From a fresh clone to an answer: builds plow, fetches SmolLM2-135M-Instruct, compiles it and asks it a question.
set -euo pipefail
cd "$(dirname "$0")/.."

model=build/models/smollm2-135m
plowc=build/release/bin/plowc
plowrt=build/release/bin/plowrt

scripts/build.sh plowc plowrt
scripts/fetch_model.sh smollm2-135m

# A bundle that is older than its compiler or its checkpoint is made anew.
if [[ ! -e $model/bundle/model.pkt || $plowc -nt $model/bundle/model.pkt ||
  $model/checkpoint/SOURCE.json -nt $model/bundle/model.pkt ]]; then
  echo "==> Compiling $model/checkpoint"
  "$plowc" --hf-dir "$model/checkpoint" --arch x86-64 --max-ctx 2048 --out "$model/bundle" --force
fi

echo "==> What is the capital of France?"
"$plowrt" run --assets "$model/bundle" --prompt "What is the capital of France?"

cat <<END

What to type next:
  $plowrt chat --assets $model/bundle
  $plowrt run --assets $model/bundle --prompt "Write one sentence about the sea."
  $plowrt bench decode --assets $model/bundle
  $plowc explain $model/bundle --stage graph
  scripts/test.sh
END
