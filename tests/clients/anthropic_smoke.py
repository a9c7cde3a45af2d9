#!/usr/bin/env python3
"""The anthropic Python client against a running server: anthropic_smoke.py URL [KEY].

Skipped with a message when the package is not installed (pip install anthropic)."""
import sys

try:
    import anthropic
except ImportError:
    print("skipped: the Python package anthropic is not installed")
    sys.exit(0)

client = anthropic.Anthropic(base_url=sys.argv[1], api_key=sys.argv[2] if len(sys.argv) > 2 else "none", max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "Name three colours."}]
options = {"model": model, "messages": messages, "max_tokens": 24,
           "extra_body": {"temperature": 0}}  # the client has no name for it any more


def check(name, holds):
    print(f"{'pass' if holds else 'FAIL'}  {name}")
    check.failed |= not holds


check.failed = False

whole = client.messages.create(**options)
text = whole.content[0].text
check("a message has text, a reason and usage", bool(text) and whole.stop_reason in ("end_turn", "max_tokens")
      and whole.usage.output_tokens > 0)
counted = client.messages.count_tokens(model=model, messages=messages)
check("count_tokens counts what a message is charged", counted.input_tokens == whole.usage.input_tokens)
with client.messages.stream(**options) as stream:
    streamed = "".join(stream.text_stream)
    final = stream.get_final_message()
check("a stream's deltas are the whole text", streamed == text and final.content[0].text == text)
check("and its end is that of the whole", final.stop_reason == whole.stop_reason and final.usage == whole.usage)
system = client.messages.create(system="Answer in one word.", **options)
check("a system prompt is part of the conversation", system.usage.input_tokens != whole.usage.input_tokens)
stopped = client.messages.create(stop_sequences=[text[4:7]], **options)
check("a stop sequence ends before itself and is named", stopped.content[0].text == text[:text.find(text[4:7])]
      and stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == text[4:7])
parts = client.messages.create(**{**options, "messages": [
    {"role": "user", "content": [{"type": "text", "text": "Name three"}, {"type": "text", "text": "colours."}]},
    {"role": "assistant", "content": text}, {"role": "user", "content": "More."}]})
check("content in blocks, and several turns", bool(parts.content[0].text))

tool = {"name": "colour", "description": "Says which colour.", "input_schema": {
    "type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}, "required": ["name"]}}
try:
    called = client.messages.create(tools=[tool], tool_choice={"type": "tool", "name": "colour"},
                                    **{**options, "max_tokens": 120})
    check("a tool that is named is called", called.stop_reason == "tool_use" and called.content[-1].name == "colour"
          and isinstance(called.content[-1].input["name"], str))
    with client.messages.stream(tools=[tool], tool_choice={"type": "tool", "name": "colour"},
                                **{**options, "max_tokens": 120}) as stream:
        check("and the same in a stream", stream.get_final_message().content[-1].input == called.content[-1].input)
except anthropic.BadRequestError as error:
    check(f"this model knows no tools, and says so: {error.message[:60]}", "tools" in error.message)

for name, change, kind in [
    ("a model that is not there", {"model": "claude"}, anthropic.NotFoundError),
    ("a temperature out of range", {"extra_body": {"temperature": -1}}, anthropic.BadRequestError),
    ("an image", {"messages": [{"role": "user", "content": [{"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": ""}}]}]}, anthropic.BadRequestError),
    ("a prompt beyond the context", {"messages": [{"role": "user", "content": "a b " * 50000}]}, anthropic.BadRequestError),
]:
    try:
        client.messages.create(**{**options, **change})
        check(name, False)
    except kind as error:
        check(f"{name}: {error.body['error']['type']}", error.body["type"] == "error")
print("failed" if check.failed else "all passed", "with anthropic", anthropic.__version__)
sys.exit(check.failed)
