#!/usr/bin/env python3
"""The openai Python client against a running server: openai_smoke.py URL [KEY].

Skipped with a message when the package is not installed (pip install openai)."""
import asyncio
import json
import sys
import urllib.request

try:
    import openai
    import pydantic  # which openai needs
except ImportError:
    print("skipped: the Python package openai is not installed")
    sys.exit(0)

url = sys.argv[1] + "/v1"
key = sys.argv[2] if len(sys.argv) > 2 else "none"
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
messages = [{"role": "user", "content": "Name three colours."}]
options = {"messages": messages, "temperature": 0, "max_tokens": 24}


def check(name, holds):
    print(f"{'pass' if holds else 'FAIL'}  {name}")
    check.failed |= not holds


check.failed = False


def client_tokens(text):
    body = json.dumps({"content": text}).encode()
    request = urllib.request.Request(sys.argv[1] + "/tokenize", body, {"Authorization": f"Bearer {key}"})
    return json.load(urllib.request.urlopen(request))["tokens"]


model = client.models.list().data[0].id
check("models.retrieve gives what models.list names", client.models.retrieve(model).id == model)
whole = client.chat.completions.create(model=model, **options)
text = whole.choices[0].message.content
check("a chat has text, a reason and usage", bool(text) and whole.choices[0].finish_reason in ("stop", "length")
      and whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens)

chunks = list(client.chat.completions.create(model=model, stream=True, stream_options={"include_usage": True}, **options))
streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
check("a stream's deltas are the whole text", streamed == text)
check("the role comes first", chunks[0].choices[0].delta.role == "assistant")
check("the last chunk is usage without choices", chunks[-1].choices == [] and chunks[-1].usage == whole.usage)
check("id and created are the same in all chunks", len({(c.id, c.created) for c in chunks}) == 1)

with client.chat.completions.stream(model=model, **options) as stream:
    stream.until_done()
    # Its get_final_completion() raises when an answer ended for its length.
    check("the stream helper agrees", stream.current_completion_snapshot.choices[0].message.content == text)

several = client.chat.completions.create(model=model, n=3, seed=7, messages=messages, temperature=1, max_tokens=8)
again = client.chat.completions.create(model=model, n=3, seed=7, messages=messages, temperature=1, max_tokens=8)
check("n choices of a seed come again", [c.message.content for c in several.choices] == [c.message.content for c in again.choices])

logprobs = client.chat.completions.create(model=model, logprobs=True, **options).choices[0].logprobs.content
check("a logprob for every token", len(logprobs) == whole.usage.completion_tokens and all(t.logprob <= 0 for t in logprobs))

ranked = client.chat.completions.create(model=model, logprobs=True, top_logprobs=5, **options).choices[0].logprobs.content
check("greedy tokens are the likeliest of five", all(len(t.top_logprobs) == 5 and t.top_logprobs[0].token == t.token
      and t.top_logprobs[0].logprob == t.logprob for t in ranked))
banned = client.chat.completions.create(model=model, logit_bias={str(i): -100 for i in client_tokens(text)}, **options)
check("tokens with a bias of -100 are not taken", not set(client_tokens(banned.choices[0].message.content)) & set(client_tokens(text)))
scored = client.completions.create(model=model, prompt="Once upon a time", max_tokens=0, echo=True, logprobs=2).choices[0]
check("an echoed prompt has scores but for its first token", scored.text == "Once upon a time" and scored.logprobs.token_logprobs[0] is None
      and all(p <= 0 for p in scored.logprobs.token_logprobs[1:]) and "".join(scored.logprobs.tokens) == scored.text)

completion = client.completions.create(model=model, prompt=["Once upon", "The sea"], max_tokens=5, temperature=0, logprobs=0)
check("a completion for each prompt, in order", [c.index for c in completion.choices] == [0, 1]
      and len(completion.choices[0].logprobs.tokens) == 5)
by_ids = client.completions.create(model=model, prompt=[504, 3575], max_tokens=5, temperature=0, echo=True)
check("token ids as the prompt, echoed", by_ids.usage.prompt_tokens == 2 and bool(by_ids.choices[0].text))
stopped = client.chat.completions.create(model=model, stop=[text[4:7]], **options)
check("a stop string ends before itself", stopped.choices[0].message.content == text[:text.find(text[4:7])]
      and stopped.choices[0].finish_reason == "stop")


class City(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=16)
    population: int = pydantic.Field(ge=0, le=99_999_999)
    capital: bool


parsed = client.chat.completions.parse(model=model, messages=messages, temperature=0, max_tokens=120, response_format=City)
check("parse() gives the class that was asked for", isinstance(parsed.choices[0].message.parsed, City))
answered = client.responses.create(model=model, input="Name three colours.", temperature=0, max_output_tokens=24)
check("a response has the chat's text", answered.output_text == text and answered.status in ("completed", "incomplete"))
with client.responses.stream(model=model, input="Name three colours.", temperature=0, max_output_tokens=24) as stream:
    deltas = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
check("a streamed response has it, too", deltas == text)
again = client.responses.create(model=model, input="More.", previous_response_id=answered.id, temperature=0, max_output_tokens=8)
check("a response goes on from another", again.usage.input_tokens > answered.usage.input_tokens
      and client.responses.retrieve(again.id).output_text == again.output_text)
schema = client.responses.parse(model=model, input="Name three colours.", temperature=0, max_output_tokens=120, text_format=City)
check("responses.parse() gives the class that was asked for", isinstance(schema.output_parsed, City))
chosen = client.chat.completions.create(model=model, messages=messages, temperature=1, seed=1, max_tokens=20,
                                        extra_body={"structured_outputs": {"choice": ["red", "green"]}})
check("a choice is one of its texts", chosen.choices[0].message.content in ("red", "green"))

for name, body, error, code in [
    ("a model that is not there", {"model": "gpt-4"}, openai.NotFoundError, "model_not_found"),
    ("a temperature out of range", {"temperature": -1}, openai.BadRequestError, "invalid_value"),
    ("tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}, openai.BadRequestError, "unsupported_parameter"),
    ("a prompt beyond the context", {"messages": [{"role": "user", "content": "a b " * 50000}]}, openai.BadRequestError,
     "context_length_exceeded"),
]:
    try:
        client.chat.completions.create(**{"model": model, **options, **body})
        check(name, False)
    except error as caught:
        check(f"{name}: {code}", caught.code == code)


async def concurrently():
    asynchronous = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)

    async def one():
        stream = await asynchronous.chat.completions.create(model=model, stream=True, **options)
        return "".join([c.choices[0].delta.content or "" async for c in stream])

    check("16 asynchronous streams are each the same", set(await asyncio.gather(*[one() for _ in range(16)])) == {text})


asyncio.run(concurrently())
try:
    from prometheus_client.parser import text_string_to_metric_families
    request = urllib.request.Request(sys.argv[1] + "/metrics", headers={"Authorization": f"Bearer {key}"})
    families = {f.name: f for f in text_string_to_metric_families(urllib.request.urlopen(request).read().decode())}
    check("prometheus-client reads the metrics", families["plow_requests_running"].samples[0].value == 0)
except ImportError:
    print("skipped: the Python package prometheus-client is not installed")
print("failed" if check.failed else "all passed", "with openai", openai.__version__)
sys.exit(check.failed)
