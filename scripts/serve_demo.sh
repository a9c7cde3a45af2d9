#!/usr/bin/env bash
# Serves SmolLM2-135M-Instruct on this machine's CPU and talks to it: curl, a stream, and the openai client when
# there is one. Then it stays, for the page, until Ctrl-C. With --once it ends by itself.
set -euo pipefail
cd "$(dirname "$0")/.."

model=build/models/smollm2-135m
plowc=build/release/bin/plowc
plowrt=build/release/bin/plowrt
port=${PLOW_PORT:-8080}
url=http://127.0.0.1:$port

scripts/build.sh plowc plowrt
scripts/fetch_model.sh smollm2-135m
if [[ ! -e $model/bundle/model.pkt || $plowc -nt $model/bundle/model.pkt ]]; then
  "$plowc" --hf-dir "$model/checkpoint" --arch x86-64 --max-ctx 2048 --out "$model/bundle" --force
fi

"$plowrt" serve --assets "$model/bundle" --port "$port" &
server=$!
trap 'kill "$server" 2> /dev/null; wait "$server"' EXIT
until curl -fs "$url/readyz" > /dev/null; do
  kill -0 "$server"
  sleep 0.2
done

echo "==> An answer"
curl -sS "$url/v1/chat/completions" -d '{"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 40, "temperature": 0}'
echo
echo "==> A stream"
curl -sSN "$url/v1/chat/completions" -d '{"messages": [{"role": "user", "content": "Count to five."}], "max_tokens": 24, "temperature": 0, "stream": true, "stream_options": {"include_usage": true}}'
echo "==> The openai client"
python3 tests/clients/openai_smoke.py "$url"
echo "==> The anthropic client"
python3 tests/clients/anthropic_smoke.py "$url"
"$plowrt" ps --port "$port"

if [[ ${1:-} != --once ]]; then
  echo "==> $url/ is a page to chat in. Ctrl-C ends."
  wait "$server"
fi
