#!/usr/bin/env python3
"""Writes what jinja2 makes of the small templates under src/text/chat_template/testdata, so that the tests there need no
Python: expressions.json from expressions.txt, and for each NAME.jinja the results in NAME.json, whose inputs (a list
under "inputs", or none for the default conversation) are kept. Needs jinja2 3.1.6 (PyPI)."""

import json
import pathlib

import chat_template_oracle

TESTDATA = pathlib.Path(__file__).resolve().parent.parent / "src" / "text" / "chat_template" / "testdata"
NOW = [2026, 3, 7, 9, 5, 4]
VARIABLES = {
    "s": "hello world",
    "u": "aé🙂z",
    "l": [1, 2, 3, "x"],
    "d": {"a": "A", "b": 2, "nested": {"list": [10, 20, 30]}, "é": "ü"},
    "shadow": {"items": "my items", "keys": "my keys"},
    "objects": [
        {"name": "one", "kind": "b", "n": 1, "flag": True, "sub": {"x": 1}},
        {"name": "two", "kind": "a", "n": 3, "flag": False, "sub": {"x": 2}},
        {"name": "three", "kind": "b", "n": 2, "flag": True, "sub": {}},
    ],
    "big": 18446744073709551615,
    "été": "summer",
}
DEFAULT_INPUT = {"messages": [{"role": "user", "content": "Hello"}], "variables": {**VARIABLES, "t": "tuple"}, "now": NOW}


def result(source, chat):
    text, raised = chat_template_oracle.render_or_raise(source, chat)
    if text is not None and " at 0x" in text:
        raise SystemExit(f"prints an address, which differs each time: {source}")
    try:
        (text or "").encode()
    except UnicodeEncodeError:  # a lone surrogate is no text
        raised = "UnicodeEncodeError"
    return {"raises": raised} if raised else {"text": text}


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def write_expressions():
    cases = []
    for line in (TESTDATA / "expressions.txt").read_text().split("\n"):
        if line and not line.startswith("# "):
            cases.append({"expression": line, **result("{{ " + line + " }}", DEFAULT_INPUT)})
    write(TESTDATA / "expressions.json", {"input": DEFAULT_INPUT, "cases": cases})
    return len(cases)


def write_templates():
    paths = sorted(TESTDATA.glob("*.jinja"))
    for path in paths:
        golden = path.with_suffix(".json")
        inputs = json.loads(golden.read_text())["inputs"] if golden.exists() else [DEFAULT_INPUT]
        write(golden, {"inputs": inputs, "results": [result(path.read_text(), chat) for chat in inputs]})
    return len(paths)


if __name__ == "__main__":
    print(f"{write_expressions()} expressions, {write_templates()} templates")
