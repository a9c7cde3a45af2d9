#!/usr/bin/env python3
"""A chat in the page at /, in a headless Chromium: chat_screenshot.py URL OUT.png [CHROMIUM]

Needs the Python package playwright and a Chromium (Debian's package chromium)."""
import sys

from playwright.sync_api import sync_playwright

url, out = sys.argv[1], sys.argv[2]
chromium = sys.argv[3] if len(sys.argv) > 3 else "/usr/bin/chromium"
with sync_playwright() as play:
    browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 900, "height": 700})
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(url + "/")
    page.fill("#text", "What is the capital of France? Answer in one sentence.")
    page.keyboard.press("Enter")
    page.locator("#figures", has_text="tokens").wait_for(timeout=120000)  # the page's policy forbids evaluating code
    page.screenshot(path=out)
    browser.close()
if problems:
    print("\n".join(problems))
    sys.exit(1)
print(out)
