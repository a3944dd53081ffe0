#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A language server for tests: `error X` on a line is an error, `warning X` none.

The error `syntax` hides all others.  `uses X` is an error, named without a severity,
unless a text that is open has `def X`.

The references to a word are all its places in the same file.  The answer to
`test/reported` is whether it has a text and has reported all that it does; that to
`test/fail` is an error.  The notification `test/pause` makes it read nothing until
it gets a signal, and `test/forget` makes it forget a text.

Usage: language_server.py [versions] [pull] [pyright] [busy] [mute] [saved]
                          [open] [stale] [includes] [loads] [utf-8] [utf-32]
                          [whole] [part] [kind] [none] [asks]

versions   name the version of the text in each report, unless it is 0
pull       report nothing unless asked
pyright    report on the text before unless asked
busy       work in progress never ends
mute       report nothing after the first text
saved      report on other texts only when a text was saved
open       know no text that is not open
stale      read a text that is not open only once
includes   report no errors of an open text that includes other files than before
loads      report an error that there is not with the second text
whole      rename by whole files, and change "# note"
part       rename in the first file only at first
kind       delete a file by a rename
none       rename nothing
asks       ask the user before a rename, and rename nothing after an answer
utf-8      count columns in bytes
utf-32     count columns in characters
"""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

FLAGS = sys.argv[1:]
RENAMES: list[str] = []
ASKED: list[Any] = []
TEXTS: dict[str, str] = {}
VERSIONS: dict[str, int] = {}
REPORTED: list[str] = []
READ: dict[str, str] = {}
TIMERS: list[threading.Timer] = []
LOCK = threading.Lock()
ENCODINGS = {"utf-8": ("utf-8", 1), "utf-32": ("utf-32-le", 4)}
LEVELS = {"error": 1, "warning": 2}
INCLUDE = re.compile("#include.*")


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with LOCK:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


def notify(method: str, **params: Any) -> None:
    send(method=method, params=params)


def diagnostics(text: str) -> list[dict[str, Any]]:
    all_ = [
        {
            "range": {
                "start": {"line": number, "character": 0},
                "end": {"line": number, "character": 1},
            },
            **({"severity": LEVELS[match[1]]} if match[1] in LEVELS else {}),
            "source": "test",
            "message": f"{match[2]} is {'wrong' if match[1] in LEVELS else 'unknown'}",
        }
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text))
        if (match := re.search(r"(error|warning|uses) (\S+)", line))
        and not (
            match[1] == "uses"
            and any(f"def {match[2]}" in other for other in TEXTS.values())
        )
    ]
    return [
        diagnostic for diagnostic in all_ if diagnostic["message"].startswith("syntax")
    ] or all_


def change(document: dict[str, Any], text: str) -> None:
    """Take `text` as that of `document`, and report on all texts that are open."""
    old = TEXTS.get(document["uri"], text)
    TEXTS[document["uri"]] = text
    VERSIONS[document["uri"]] = document["version"]
    if "pull" in FLAGS or ("mute" in FLAGS and REPORTED):
        return
    params = {"uri": document["uri"], "version": document["version"]}
    if "pyright" in FLAGS:
        publish({**params, "diagnostics": diagnostics(old)})
    elif "includes" in FLAGS and set(INCLUDE.findall(old)) ^ set(INCLUDE.findall(text)):
        publish({**params, "diagnostics": []})
    else:
        report(document["uri"])
    REPORTED.append(text)
    if "saved" not in FLAGS:
        report_others(document)


def report_others(document: dict[str, Any]) -> None:
    for uri in TEXTS:
        if uri != document["uri"]:
            report(uri)


def report(uri: str) -> None:
    loads = "loads" in FLAGS and len(REPORTED) == 1
    text = "error loading\n" * loads + TEXTS[uri]
    params = {"uri": uri, "diagnostics": diagnostics(text)}
    if "versions" in FLAGS and VERSIONS[uri]:
        params["version"] = VERSIONS[uri]
    TIMERS.append(threading.Timer(0.15, publish, [params, *TIMERS[-1:]]))
    TIMERS[-1].start()


def publish(params: dict[str, Any], *earlier: threading.Timer) -> None:
    """Send `found` after `earlier` reports, unless its text was closed meanwhile."""
    for timer in earlier:
        timer.join()
    if params["uri"] in TEXTS:
        notify("textDocument/publishDiagnostics", **params)


def known_text(uri: str) -> str:
    """Return the text of `uri`, open or in its file."""
    if uri in TEXTS or "open" in FLAGS:
        return TEXTS.get(uri, "")
    if uri not in READ or "stale" not in FLAGS:
        READ[uri] = Path(unquote(urlsplit(uri).path)).read_text(encoding="utf-8")
    return READ[uri]


def encoding_of_columns() -> tuple[str, int]:
    """Return the encoding in which columns are counted, and the bytes of a unit."""
    flag = next((flag for flag in FLAGS if flag in ENCODINGS), "")
    return ENCODINGS.get(flag, ("utf-16-le", 2))


def characters(line: str, units: int) -> int:
    """Return the number of characters before the column `units` of `line`."""
    encoding, size = encoding_of_columns()
    return len(line.encode(encoding)[: units * size].decode(encoding, "replace"))


def place(line: str, number: int, found: re.Match[str]) -> dict[str, Any]:
    """Return the range of `found` in `line`, which has `number`."""
    encoding, size = encoding_of_columns()
    start, end = (
        len(line[:at].encode(encoding)) // size for at in (found.start(), found.end())
    )
    return span(number, start, end)


def references(uri: str, position: dict[str, int]) -> list[dict[str, Any]]:
    lines = known_text(uri).split("\n")
    if position["line"] >= len(lines):
        return []
    column = characters(lines[position["line"]], position["character"])
    word = re.match(r"\w+", lines[position["line"]][column:])
    return [
        {"uri": uri, "range": place(line, number, match)}
        for number, line in enumerate(lines)
        for match in (re.finditer(rf"\b{word[0]}\b", line) if word else ())
    ]


def rename(request: Any, uri: str, params: dict[str, Any]) -> None:
    """Answer `request`: rename the word in all texts beside `uri` in a file x.py."""
    if "asks" in FLAGS:
        ASKED.append(request)
        question = {"type": 1, "message": "Sure?", "actions": [{"title": "Yes"}]}
        send(id="question", method="window/showMessageRequest", params=question)
        return
    position, new = params["position"], params["newName"]
    line = known_text(uri).split("\n")[position["line"]]
    match = re.match(r"\w+", line[characters(line, position["character"]) :])
    word = re.compile(rf"\b{re.escape(match[0])}\b" if match else r"(?!)")
    RENAMES.append(new)
    changes = []
    for path in sorted(Path(unquote(urlsplit(uri).path)).parent.glob("*.py")):
        other = f"{uri.rpartition('/')[0]}/{path.name}"
        text = TEXTS[other] if other in TEXTS else path.read_bytes().decode()
        edits = [
            {"range": place(line, number, found), "newText": new}
            for number, line in enumerate(text.split("\n"))
            for found in word.finditer(line)
        ]
        if "whole" in FLAGS and edits:
            whole = word.sub(new, text).replace("# note", "# other note")
            edits = [{"range": span(0, 0, 0, 9999), "newText": whole}]
        if not path.name.startswith("left") and edits:
            document = {"uri": other, "version": None}
            changes.append({"textDocument": document, "edits": edits})
    if "part" in FLAGS and len(RENAMES) == 1:
        changes = changes[:1]
    if "none" in FLAGS:
        changes = []
    if "kind" in FLAGS:
        changes.append({"kind": "delete", "uri": uri})
    send(id=request, result={"documentChanges": changes})


def span(line: int, start: int, end: int, last: int | None = None) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": start},
        "end": {"line": line if last is None else last, "character": end},
    }


def handle(message: dict[str, Any]) -> None:
    method, params = message.get("method"), message.get("params") or {}
    uri = params.get("textDocument", params).get("uri")
    if method == "initialize":
        can: dict[str, Any] = {"textDocumentSync": {"openClose": True, "change": 1}}
        if "pull" in FLAGS:
            can["diagnosticProvider"] = {"interFileDependencies": False}
        for encoding in set(FLAGS) & set(ENCODINGS):
            can["positionEncoding"] = encoding
        if "pyright" in FLAGS:
            can["executeCommandProvider"] = {"commands": ["pyright.createtypestub"]}
        send(id=message["id"], result={"capabilities": can})
        if "busy" in FLAGS:
            notify("$/progress", token="work", value={"kind": "begin", "title": "x"})
    elif method == "textDocument/didOpen":
        assert uri not in TEXTS, "it is open"
        change(params["textDocument"], params["textDocument"]["text"])
    elif method == "textDocument/didChange":
        change(params["textDocument"], params["contentChanges"][-1]["text"])
    elif method == "textDocument/didSave":
        report_others(params["textDocument"])
    elif method == "textDocument/didClose":
        TEXTS.pop(uri, None)
        notify("textDocument/publishDiagnostics", uri=uri, diagnostics=[])
    elif method == "textDocument/diagnostic":
        items = diagnostics(TEXTS[uri])
        send(id=message["id"], result={"kind": "full", "items": items})
    elif method == "textDocument/references":
        send(id=message["id"], result=references(uri, params["position"]))
    elif message.get("id") == "question":
        send(id=ASKED.pop(), result={"documentChanges": []})
    elif method == "textDocument/rename":
        rename(message["id"], uri, params)
    elif method == "test/forget":
        del TEXTS[uri]
    elif method == "test/pause":
        signal.sigwait({signal.SIGUSR1})
    elif method == "test/reported":
        for timer in TIMERS:
            timer.join()
        send(id=message["id"], result=TEXTS.get(uri) == params["text"])
    elif method == "test/fail":
        send(id=message["id"], error={"code": -32000, "message": "It fails"})
    elif method == "exit":
        sys.exit()
    elif "id" in message and method:
        send(id=message["id"], result=None)


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
while header := sys.stdin.buffer.readline():
    if match := re.match(rb"Content-Length: (\d+)", header):
        sys.stdin.buffer.readline()
        handle(json.loads(sys.stdin.buffer.read(int(match[1]))))
