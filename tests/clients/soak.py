#!/usr/bin/env python3
"""Many streams at once with random cancels, slow readers and malformed requests, against a running server:

    soak.py URL [--seconds 120] [--streams 64] [--pid PID]

Every stream that is read to its end must be what it was alone. With the server's process id its memory is watched:
what it holds at the end may not be more than 64 MiB above what it held after the first quarter. Needs only Python."""
import argparse
import http.client
import json
import random
import sys
import threading
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
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {args.key}"}

MALFORMED = [b"", b"{", b"\xff\xfe", b'{"messages": 3}', b'{"messages":[{"role":"user","content":"\\ud800"}]}', b"[" * 10000,
             b'{"messages":[{"role":"user","content":"x"}],"guided_regex":"["}', b'{"messages":[{"role":"user","content":"x"}],"temperature":-1}']
BODIES = []
for i in range(24):
    body = {"messages": [{"role": "user", "content": f"{i} " + "word " * (i % 9)}], "stream": True, "temperature": 1, "seed": i, "max_tokens": 8 + 3 * i}
    if i % 6 == 5:
        body["structured_outputs"] = {"json": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}, "required": ["a", "b"]}}
    BODIES.append(json.dumps(body).encode())


def post(body):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
    connection.request("POST", "/v1/chat/completions", body, headers)
    return connection, connection.getresponse()


def read_stream(response, slow, leave_after):
    """The text, or none when this client left."""
    text, done = [], False
    for n, line in enumerate(response):
        if n == leave_after:
            return None
        if slow and n % 7 == 0:
            time.sleep(0.05)
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


def alone(body):
    connection, response = post(body)
    assert response.status == 200, response.read()
    text = read_stream(response, False, -1)
    connection.close()
    return text


def memory():
    with open(f"/proc/{args.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


expected = [alone(body) for body in BODIES]
counts = {"whole": 0, "left": 0, "refused": 0, "malformed": 0, "wrong": 0}
lock = threading.Lock()
end = time.monotonic() + args.seconds


def count(what):
    with lock:
        counts[what] += 1


def client(seed):
    r = random.Random(seed)
    while time.monotonic() < end:
        try:
            if r.random() < 0.1:
                connection, response = post(r.choice(MALFORMED))
                count("malformed" if response.status == 400 else "wrong")
                connection.close()
                continue
            i = r.randrange(len(BODIES))
            connection, response = post(BODIES[i])
            if response.status == 503:
                count("refused")
                connection.close()
                time.sleep(0.05)
                continue
            text = read_stream(response, r.random() < 0.1, r.randrange(1, 20) if r.random() < 0.3 else -1)
            connection.close()
            if text is None:
                count("left")
            elif text == expected[i]:
                count("whole")
            else:
                count("wrong")
                print(f"body {i}: {text!r} instead of {expected[i]!r}", file=sys.stderr)
        except Exception as problem:  # a client's thread must say what it met
            count("wrong")
            print(f"{type(problem).__name__}: {problem}", file=sys.stderr)


threads = [threading.Thread(target=client, args=(seed,)) for seed in range(args.streams)]
for thread in threads:
    thread.start()
figures = []
while any(thread.is_alive() for thread in threads):
    time.sleep(1)
    if args.pid:
        figures.append(memory())
for thread in threads:
    thread.join()
print(counts)
failed = counts["wrong"] > 0 or counts["whole"] == 0
if figures:
    quarter = figures[len(figures) // 4]
    print(f"memory: {figures[0]:.0f} MiB at first, {quarter:.0f} after a quarter, {figures[-1]:.0f} at the end, {max(figures):.0f} at most")
    failed |= figures[-1] > quarter + 64
sys.exit(1 if failed else 0)
