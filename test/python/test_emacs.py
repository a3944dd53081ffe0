# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls of Emacs and to Emacs, over real sockets."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sexpdata import Symbol

from conftest import Start
from endpoint import SESSION, Endpoint, diff_of
from fake_cli import BOUND
from fake_emacs import NO_ANSWER, ReturnedError, plist
from gemini_companion_epc import emacs
from gemini_companion_epc.emacs import Emacs
from gemini_companion_epc.texts import LARGE_TEXT
from gemini_companion_epc.types import EmacsError, Facts


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_emacs_learns_where_a_client_runs_searches_and_is_connected(
    start: Start, tmp_path: Path, is_elsewhere: bool
) -> None:
    command = "import socket; s = socket.create_connection(('127.0.0.1', {})); input()"
    searched = tmp_path / "\u00e9\udcff" / "gemini" / "ide"
    searched.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as editor:
        port = editor.getsockname()[1]
        if is_elsewhere:
            (searched / f"gemini-ide-server-1-{port}.json").touch()
        with subprocess.Popen(
            ["gemini", "-c", command.format(port)],
            executable=sys.executable,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "TMPDIR": str(searched.parents[1])},
            stdin=subprocess.PIPE,
        ) as child:
            emacs = start()
            with editor.accept()[0]:
                processes = map(plist, emacs.call("processes"))
                facts = next(facts for facts in processes if facts["pid"] == child.pid)
            # A discovery file is written there as well.
            temporary = str(tmp_path / "temporary")
            answer = emacs.call("temporaries-update", [temporary])
            assert answer[-1][0] == "gemini"
            assert answer[-1][1].startswith(f"{temporary}/gemini/ide/")
            child.kill()
    assert facts == {
        "pid": child.pid,
        "client": "gemini",
        "directory": str(tmp_path),
        "searches": str(searched).replace("\udcff", "\ufffd"),
        **({"elsewhere": True} if is_elsewhere else {}),
    }


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("open-diff", lambda emacs: emacs.open_diff(diff_of("x"), SESSION)),
        ("close-diff", lambda emacs: emacs.close_diff(1, "closed")),
    ],
)
def test_an_error_of_emacs_is_an_error(
    epc: Endpoint, method: str, call: Callable[[Emacs], Coroutine[Any, Any, object]]
) -> None:
    peer = epc.peer()
    peer.answers[method] = lambda *args: NO_ANSWER
    waiting = epc.start(call(epc.emacs))
    peer.expect(method)
    peer.send_text('(return-error 1 "void-function")')
    with pytest.raises(EmacsError, match="void-function"):
        waiting.result(BOUND)


def test_pending_calls_fail_when_emacs_leaves(epc: Endpoint) -> None:
    peer = epc.peer()
    peer.answers["close-diff"] = lambda diff_id, reason: NO_ANSWER
    waiting = epc.start(epc.emacs.close_diff(1, "closed"))
    peer.expect("close-diff")
    peer.close()
    with pytest.raises(EmacsError):
        waiting.result(BOUND)
    with pytest.raises(EmacsError):
        epc.run(epc.emacs.close_diff(2, "closed"))
    epc.do(epc.emacs.warn, "no peer receives it")


def test_a_large_text_is_refused_when_no_file_can_be_written(
    epc: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = epc.peer()
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    with pytest.raises(EmacsError, match=r"^Not a directory$"):
        epc.run(epc.emacs.open_diff(diff_of("x" * LARGE_TEXT), SESSION))
    epc.open(diff_of("less"))
    assert peer.expect("open-diff")[3] == "less"


def test_another_file_is_not_read_or_deleted(epc: Endpoint, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("x")
    with pytest.raises(ReturnedError, match="prefix"):
        epc.peer().call("diff-accepted", 1, {"file": str(other)})
    assert other.read_text() == "x"


def test_an_emacs_that_answers_nothing_is_asked_no_more_than_a_bound(
    epc: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emacs, "MOST_WAITING", 3)
    peer = epc.peer()
    peer.answers["ask"] = lambda *_: NO_ANSWER

    def ask() -> "Future[Facts]":
        return epc.start(epc.emacs.ask("diagnostics", {}, ["x" * 1_000_000]))

    waiting = [ask() for _ in range(3)]
    for _ in waiting:
        peer.expect("ask")
    with pytest.raises(EmacsError, match="does not answer"):
        ask().result(BOUND)
    # Each text is in a file, as long as Emacs has not read it.
    assert len(peer.unanswered) == 3
    for uid in peer.unanswered:
        peer.send([Symbol("return"), uid, []])
    assert [answer.result(BOUND) for answer in waiting] == [{}, {}, {}]
    peer.answers["ask"] = lambda *_: []
    assert ask().result(BOUND) == {}
