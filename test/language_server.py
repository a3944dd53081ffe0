#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A language server for tests: `error X` on a line is an error, `warning X` none.

The error `syntax` hides all others.

The references to a word are all its places in the same file.  The notification
`test/sleep` makes it read nothing for some seconds.

Usage: language_server.py [versions] [early] [partial] [pull] [busy] [mute]
                          [open] [stale]

versions   name the version of the text in each report
early      report before the next message is read
partial    first report nothing, and after 0.1 s all
pull       report nothing unless asked
busy       work in progress never ends
mute       report nothing after the first text
open       know no text that is not open
stale      read a text that is not open only once
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

FLAGS = sys.argv[1:]
TEXTS: dict[str, str] = {}
READ: dict[str, str] = {}
LOCK = threading.Lock()


def send(**message: Any) -> None:
    """Send `message`."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with LOCK:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


def notify(method: str, **params: Any) -> None:
    """Send the notification `method`."""
    send(method=method, params=params)


def diagnostics(text: str) -> list[dict[str, Any]]:
    """Return what there is to say of `text`."""
    found_all = [
        {
            "range": {
                "start": {"line": number, "character": 0},
                "end": {"line": number, "character": 1},
            },
            "severity": 1 if found[1] == "error" else 2,
            "source": "test",
            "message": f"{found[2]} is wrong",
        }
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text))
        if (found := re.search(r"(error|warning) (\S+)", line))
    ]
    return [
        found for found in found_all if found["message"].startswith("syntax")
    ] or found_all


def report(document: dict[str, Any], text: str) -> None:
    """Report what is wrong in `text`, of `document`."""
    TEXTS[document["uri"]] = text
    if "pull" in FLAGS:
        return
    found = {"uri": document["uri"], "diagnostics": diagnostics(text)}
    if "versions" in FLAGS:
        found["version"] = document["version"]
    if "mute" in FLAGS and (document["version"] > 0 or "opened" in FLAGS):
        return
    FLAGS.append("opened")
    method = "textDocument/publishDiagnostics"
    if "early" in FLAGS:
        notify(method, **found)
        return
    if "partial" in FLAGS:
        threading.Timer(0.05, notify, [method], {**found, "diagnostics": []}).start()
    threading.Timer(0.15, notify, [method], found).start()


def known_text(uri: str) -> str:
    """Return the text of `uri`, open or in its file."""
    if uri in TEXTS or "open" in FLAGS:
        return TEXTS.get(uri, "")
    if uri not in READ or "stale" not in FLAGS:
        READ[uri] = Path(unquote(urlsplit(uri).path)).read_text(encoding="utf-8")
    return READ[uri]


def references(uri: str, position: dict[str, int]) -> list[dict[str, Any]]:
    """Return the places of the word at `position` of `uri`."""
    lines = known_text(uri).split("\n")
    if position["line"] >= len(lines):
        return []
    word = re.match(r"\w+", lines[position["line"]][position["character"] :])
    return [
        {
            "uri": uri,
            "range": {
                "start": {"line": number, "character": found.start()},
                "end": {"line": number, "character": found.end()},
            },
        }
        for number, line in enumerate(lines)
        for found in (re.finditer(rf"\b{word[0]}\b", line) if word else ())
    ]


def handle(message: dict[str, Any]) -> None:
    """Answer `message`."""
    method, params = message.get("method"), message.get("params")
    if method == "initialize":
        can: dict[str, Any] = {"textDocumentSync": {"openClose": True, "change": 1}}
        if "pull" in FLAGS:
            can["diagnosticProvider"] = {"interFileDependencies": False}
        send(id=message["id"], result={"capabilities": can})
        if "busy" in FLAGS:
            notify("$/progress", token="work", value={"kind": "begin", "title": "x"})
    elif method == "textDocument/didOpen":
        report(params["textDocument"], params["textDocument"]["text"])
    elif method == "textDocument/didChange":
        report(params["textDocument"], params["contentChanges"][-1]["text"])
    elif method == "textDocument/didClose":
        uri = params["textDocument"]["uri"]
        TEXTS.pop(uri, None)
        notify("textDocument/publishDiagnostics", uri=uri, diagnostics=[])
    elif method == "textDocument/diagnostic":
        items = diagnostics(TEXTS[params["textDocument"]["uri"]])
        send(id=message["id"], result={"kind": "full", "items": items})
    elif method in ("textDocument/references", "textDocument/documentHighlight"):
        uri = params["textDocument"]["uri"]
        send(id=message["id"], result=references(uri, params["position"]))
    elif method == "test/sleep":
        time.sleep(params["seconds"])
    elif method == "exit":
        sys.exit()
    elif "id" in message and method:
        send(id=message["id"], result=None)


while header := sys.stdin.buffer.readline():
    if found := re.match(rb"Content-Length: (\d+)", header):
        sys.stdin.buffer.readline()
        handle(json.loads(sys.stdin.buffer.read(int(found[1]))))
