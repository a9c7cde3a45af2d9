#!/usr/bin/env python3
"""Many streams at once with random cancels, slow readers and malformed requests, against a running server:

    soak.py URL [--seconds 120] [--streams 64] [--pid PID]

Every stream that is read to its end must be what it was alone. With the server's process id its memory is watched:
what it holds at the end may not be more than 64 MiB above what it held after the first quarter. At the end the server's
own overhead per token is printed, from its metrics plow_token_overhead_seconds of this run: a percentile is the upper
bound of the bucket that it falls into. Needs only Python."""
import argparse
import asyncio
import json
import random
import sys
import time
import urllib.parse

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("--seconds", type=float, default=120)
parser.add_argument("--streams", type=int, default=64)
parser.add_argument("--pid", type=int)
parser.add_argument("--key", default="none")
args = parser.parse_args()
address = urllib.parse.urlparse(args.url)

MALFORMED = [b"", b"{", b"\xff\xfe", b'{"messages": 3}', b'{"messages":[{"role":"user","content":"\\ud800"}]}', b"[" * 10000,
             b'{"messages":[{"role":"user","content":"x"}],"guided_regex":"["}', b'{"messages":[{"role":"user","content":"x"}],"temperature":-1}']
BODIES = []
for i in range(24):
    body = {"messages": [{"role": "user", "content": f"{i} " + "word " * (i % 9)}], "stream": True, "temperature": 1, "seed": i, "max_tokens": 8 + 3 * i}
    if i % 6 == 5:
        body["structured_outputs"] = {"json": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}, "required": ["a", "b"]}}
    BODIES.append(json.dumps(body).encode())

PATIENCE = 300  # seconds for a line: with many streams on few processors a place in the queue takes long


class Exchange:
    """One request of HTTP/1.0, whose response ends with the connection."""

    async def open(self, method, path, body=b""):
        self.reader, self.writer = await asyncio.open_connection(address.hostname, address.port)
        self.writer.write(f"{method} {path} HTTP/1.0\r\nHost: {address.netloc}\r\nAuthorization: Bearer {args.key}\r\n"
                          f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        self.status = int((await self.line()).split()[1])
        while (await self.line()).strip():
            pass
        return self

    async def line(self):
        return await asyncio.wait_for(self.reader.readline(), PATIENCE)

    def close(self):
        self.writer.close()


async def read_stream(exchange, slow, leave_after):
    """The text, or none when this client left."""
    text, done, n = [], False, 0
    while line := await exchange.line():
        if n == leave_after:
            return None
        n += 1
        if slow and n % 7 == 0:
            await asyncio.sleep(0.05)
        if not line.startswith(b"data: "):
            continue
        if line.strip() == b"data: [DONE]":
            done = True
            continue
        frame = json.loads(line[6:])
        if "error" in frame:
            raise RuntimeError(frame["error"]["message"])
        for choice in frame["choices"]:
            text.append(choice["delta"].get("content") or "")
    if not done:
        raise RuntimeError("a stream ended without [DONE]")
    return "".join(text)


counts = {"whole": 0, "left": 0, "refused": 0, "malformed": 0, "wrong": 0}


async def one_request(r, expected):
    if r.random() < 0.1:
        exchange = await Exchange().open("POST", "/v1/chat/completions", r.choice(MALFORMED))
        exchange.close()
        return "malformed" if exchange.status == 400 else "wrong"
    i = r.randrange(len(BODIES))
    exchange = await Exchange().open("POST", "/v1/chat/completions", BODIES[i])
    try:
        if exchange.status == 503:
            await asyncio.sleep(0.05)
            return "refused"
        text = await read_stream(exchange, r.random() < 0.1, r.randrange(1, 20) if r.random() < 0.3 else -1)
    finally:
        exchange.close()
    if text is None or text == expected[i]:
        return "left" if text is None else "whole"
    print(f"body {i}: {text!r} instead of {expected[i]!r}", file=sys.stderr)
    return "wrong"


async def client(seed, end, expected):
    r = random.Random(seed)
    while time.monotonic() < end:
        try:
            counts[await one_request(r, expected)] += 1
        except Exception as problem:  # a client must say what it met
            counts["wrong"] += 1
            print(f"{type(problem).__name__}: {problem}", file=sys.stderr)


def memory():
    with open(f"/proc/{args.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


async def overhead():
    """Tokens of streams by the upper bound of their bucket, as the server counted them so far; cumulative."""
    exchange = await Exchange().open("GET", "/metrics")
    text = (await exchange.reader.read()).decode()
    exchange.close()
    name = 'plow_token_overhead_seconds_bucket{le="'
    return {line[len(name):line.index('"}')]: int(line.split()[-1]) for line in text.splitlines() if line.startswith(name)}


def percentile(before, after, share):
    counted = {bound: after[bound] - before[bound] for bound in after}
    return next(bound for bound, n in counted.items() if n >= share * counted["+Inf"])


async def run():
    expected = []
    for body in BODIES:
        exchange = await Exchange().open("POST", "/v1/chat/completions", body)
        expected.append(await read_stream(exchange, False, -1))
        exchange.close()
    before = await overhead()
    end = time.monotonic() + args.seconds
    clients = [asyncio.create_task(client(seed, end, expected)) for seed in range(args.streams)]
    figures = []
    while not all(task.done() for task in clients):
        await asyncio.sleep(1)
        if args.pid:
            figures.append(memory())
    after = await overhead()
    print(f"{args.streams} streams, {args.seconds:.0f} s: {counts}")
    tokens = after["+Inf"] - before["+Inf"]
    print(f"overhead of {tokens} tokens of streams: " + ", ".join(f"p{100 * p:g} <= {percentile(before, after, p)} s" for p in (0.5, 0.9, 0.99)))
    failed = counts["wrong"] > 0 or counts["whole"] == 0
    if figures:
        quarter = figures[len(figures) // 4]
        print(f"memory: {figures[0]:.0f} MiB at first, {quarter:.0f} after a quarter, {figures[-1]:.0f} at the end, {max(figures):.0f} at most")
        failed |= figures[-1] > quarter + 64
    return failed


sys.exit(1 if asyncio.run(run()) else 0)
