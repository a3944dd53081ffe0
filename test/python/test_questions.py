# SPDX-License-Identifier: GPL-3.0-or-later
"""The path /tools: who is let in, what is asked, and the texts for the model."""

import asyncio
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import Alone, ServeAlone, Start, edit
from fake_cli import BOUND, FakeCli
from gemini_companion_epc import threads
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.model_texts import LONGEST_ANSWER, LONGEST_LINE
from gemini_companion_epc.questions import TOOLS, Questions
from gemini_companion_epc.types import Facts


def request(
    port: int, token: str, body: object, method: str = "POST"
) -> tuple[int, Any]:
    cli = FakeCli(port, token)
    status, _, text = cli.request(method, json.dumps(body), path="/tools")
    return status, json.loads(text) if status == 200 else text


def call(alone: Alone, directory: Path, name: str, **arguments: Any) -> dict[str, Any]:
    body = {
        "directory": str(directory),
        "pid": os.getpid(),
        "method": "call",
        "name": name,
        "arguments": arguments,
    }
    status, answer = request(alone.port, alone.token, body)
    assert status == 200, answer
    return dict(answer)


def text_of(result: dict[str, Any]) -> str:
    (part,) = result["content"]
    return str(part["text"])


def test_tools_are_refused_while_off(alone: Alone) -> None:
    body = {"directory": "/", "method": "list"}
    assert request(alone.port, alone.token, body)[0] == 404
    alone.linked.turn(True)
    assert request(alone.port, alone.token, body) == (200, {"tools": TOOLS})
    assert request(alone.port, alone.token, body, "GET")[0] == 405


# The last ones keep Emacs busy.
ODD = ["/a\0", "/ssh:host:/a", "/" + 2100 * "é", "/a" * 1000, "/a" * 100_000]


@pytest.mark.parametrize(
    "body",
    [
        [],
        *({"directory": name, "method": "list"} for name in ODD),
        *({"method": "event", "event": {**edit("/a"), "cwd": name}} for name in ODD),
        *({"method": "event", "event": edit(name)} for name in ODD),
        {},
        {"directory": "relative", "method": "list"},
        {"directory": "/", "method": "other"},
        {"method": "event"},
        {"method": "event", "event": edit("/a", newContent=1)},
        {"method": "event", "event": edit("/a", originalContent=1)},
        {"method": "event", "event": {**edit("/a"), "cwd": "relative"}},
    ],
    ids=lambda body: str(body)[:60],
)
def test_malformed_requests_are_refused(alone: Alone, body: object) -> None:
    alone.linked.turn(True)
    assert request(alone.port, alone.token, body)[0] == 400


def test_a_directory_that_does_not_answer_holds_up_no_other(
    alone: Alone, dead_mount: Path, tmp_path: Path
) -> None:
    alone.answer({})
    with ThreadPoolExecutor() as pool:
        dead = [
            pool.submit(
                request, alone.port, alone.token,
                {"method": "event", "event": {**edit("a"), "cwd": str(dead_mount)}},
            )
            for _ in range(3)
        ]  # fmt: skip
        answered = 0
        while not any(answer.done() for answer in dead):
            event = {**edit(f"{answered}.py"), "cwd": str(tmp_path)}
            body = {"method": "event", "event": event}
            assert request(alone.port, alone.token, body) == (200, {})
            answered += 1
        # The last one may have waited for a dead one.
        assert answered > 1
        assert [answer.result(BOUND)[0] for answer in dead] == [400, 400, 400]
    # It is not waited for again.
    began = time.monotonic()
    body = {"directory": str(dead_mount), "method": "list"}
    for _ in range(100):
        assert request(alone.port, alone.token, body)[0] == 400
    assert time.monotonic() - began < 100 * threads.LIMIT


def test_the_declarations_are_short() -> None:
    assert len(json.dumps(TOOLS)) <= 3000


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"symbol": "x"}, "'file' is a required property"),
        ({"file": "a.py", "symbol": "x", "column": 3}, "'column' was unexpected"),
        ({"file": "a.py", "symbol": "x", "line": True}, "$.line: True is not of type"),
        ({"file": "a.py", "symbol": "x", "line": 0}, "$.line: 0 is less than"),
        ({"file": "a.py", "symbol": ""}, "$.symbol: '' "),
        ([], "$: [] is not of type 'object'"),
        *(({"file": name, "symbol": "x"}, "file must be") for name in ODD),
    ],
    ids=lambda value: str(value)[:60],
)
def test_malformed_arguments_are_named(
    alone: Alone, tmp_path: Path, arguments: object, part: str
) -> None:
    alone.linked.turn(True)
    body = {"directory": str(tmp_path), "method": "call", "name": "references"}
    result = request(alone.port, alone.token, {**body, "arguments": arguments})[1]
    assert result["isError"]
    assert part in text_of(result)
    assert not alone.emacs.asked


def test_references_are_grouped_by_file_and_line(alone: Alone, tmp_path: Path) -> None:
    root = tmp_path
    long = "y = " + "before." * 20 + "word" + ".after" * 20
    texts = ["def word():", long, "    word,", "  def word():"]
    references = [
        [str(root / "a.py"), line, text] for line, text in enumerate(texts, 1)
    ]
    references.append([str(root / "b.py"), 3, "def word():"])
    alone.answer({"total": 5, "locations": references})
    text = text_of(call(alone, root, "references", file="a.py", symbol="word"))
    count, a, one, two, three, b, four = text.split("\n")
    assert [count, a, one, three, b, four] == [
        "5 references", "a.py", "1,4:def word():", "3", "b.py", "3:def word():"
    ]  # fmt: skip
    assert two.startswith("2:…")
    assert two.endswith(".word…")
    assert len(two) <= 80
    assert alone.emacs.asked[0][1]["path"] == str(root / "a.py")


def test_a_long_answer_is_cut_and_can_be_resumed(alone: Alone, tmp_path: Path) -> None:
    root = tmp_path
    references = [[str(root / f"{n}{40 * 'd'}"), n, "x" * 200] for n in range(100)]
    alone.answer({"total": 1234, "locations": references})
    text = text_of(call(alone, root, "references", file="a.py", symbol="x", after=200))
    assert len(text) <= LONGEST_ANSWER
    *_, last_place, rest = text.split("\n")
    assert all(len(line) <= LONGEST_LINE for line in text.split("\n"))
    shown = int(last_place.split(":")[0]) + 1
    assert rest == f"… {1234 - 200 - shown} more; ask with after: {200 + shown}"


@pytest.mark.parametrize(
    ("name", "arguments", "facts", "text"),
    [
        (
            "definition",
            {"file": "a.py", "symbol": "word", "line": 2},
            {
                "locations": [["{root}/a.py", 7], ["/lib/b.py", 9]],
                "documentation": "def word() -> int\nReturn it.\n",
                "source": "def word():\n    return 1\n",
            },
            "a.py:7\n/lib/b.py:9\n\n"
            "def word() -> int\nReturn it.\n\ndef word():\n    return 1",
        ),
        (
            "references", {"file": "a.py", "symbol": "x"},
            {
                "total": 1, "locations": [["{root}/a.py", 1, "x = 1"]], "busy": True,
                "elsewhere": [f"{{root}}/{n}.py" for n in range(7)],
            },
            "1 reference\na.py\n1:x = 1\n"
            "The language server is still loading; ask again for all uses.\n"
            "No use found, or not read, in files with this word: 0.py, 1.py and 5 more",
        ),
        (
            "references", {"file": "a.py", "symbol": "x"},
            {
                "total": 1, "locations": [["{root}/a.py", 1, "x = 1"]],
                "elsewhere": "unknown",
            },
            "1 reference\na.py\n1:x = 1\n"
            "Emacs could not search other files for this word; search them.",
        ),
        (
            "diagnostics", {"file": "a.py"},
            {"rows": [[1, "warning", "y"], [4, "error", "x"], [3, "error", "x"]]},
            "3: error: x\n4: error: x\n1: warning: y",
        ),
        (
            "diagnostics", {},
            {"rows": [["{root}/a.py", 0, 1], ["/b.py", 2, 0], ["/c.py", 0, 0]]},
            "/b.py: 2 errors, 0 warnings\na.py: 0 errors, 1 warnings",
        ),
        ("diagnostics", {}, {"rows": [["", 0, 0]]}, "Emacs has no errors or warnings."),
        (
            "diagnostics", {}, {},
            "Emacs checks no file that is shared; run the project's own checks",
        ),
        ("definition", {"file": "a", "symbol": "x"}, {"problem": "Paused"}, "Paused"),
    ],
)  # fmt: skip
def test_an_answer_is_a_text(
    alone: Alone,
    tmp_path: Path,
    name: str,
    arguments: dict[str, Any],
    facts: Facts,
    text: str,
) -> None:
    here = json.loads(json.dumps(facts).replace("{root}", str(tmp_path)))
    alone.answer(here)
    result = call(alone, tmp_path, name, **arguments)
    assert result == {"content": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (
            {
                "files": [
                    ["{root}/a.py", [1, 4], 0],
                    ["{root}/b.py", [3], 2],
                ],
                "elsewhere": ["{root}/read.me"],
            },
            "Renamed one to uno and saved; lines changed:\na.py: 1,4\n"
            "b.py: 3; 2 times still one\n"
            "Other files with the word one, unchanged: read.me",
        ),
        (
            {"left": []},
            "Nothing was renamed: a file could not be written. Do not rename by other "
            "edits; ask the user.",
        ),
        (
            {"left": ["{root}/a.py"]},
            "A file could not be written, so the rename was not completed. These files "
            "were written, and could not be restored: a.py. Ask the user.",
        ),
        (
            {"refused": "refused", "reason": "It is public."},
            "Nothing was renamed: the user refused. Do not rename by other edits; ask "
            "the user.\nReason of the user: It is public.",
        ),
        (
            {"refused": "changed"},
            "Nothing was renamed: a file has changed meanwhile. Do not rename by other "
            "edits; ask for the rename again.",
        ),
        (
            {"files": [["{root}/a.py", [1], 0]], "elsewhere": "unknown"},
            "Renamed one to uno and saved; lines changed:\na.py: 1\n"
            "Emacs could not search other files for the word one; search them.",
        ),
        ({"problem": "uno is not a name"}, "uno is not a name"),
    ],
)
def test_the_end_of_a_rename_is_a_text(
    alone: Alone, tmp_path: Path, facts: Facts, text: str
) -> None:
    alone.answer(json.loads(json.dumps(facts).replace("{root}", str(tmp_path))))
    arguments = {"file": "a.py", "symbol": "one", "new_name": "uno"}
    result = call(alone, tmp_path, "rename_symbol", **arguments)
    assert text_of(result) == text
    ((kind, facts, _),) = alone.emacs.asked
    assert (kind, facts["path"]) == ("rename", str(tmp_path / "a.py"))
    assert (facts["symbol"], facts["new"]) == ("one", "uno")
    bad = call(alone, tmp_path, "rename_symbol", file="a.py", symbol="one")
    assert bad["isError"]


def test_the_end_of_a_large_rename_has_what_is_left(
    alone: Alone, tmp_path: Path
) -> None:
    lines = list(range(1000, 1100))
    paths = [f"{tmp_path}/{'directory/' * 9}{number}.py" for number in range(100)]
    alone.answer(
        {
            "files": [[path, lines, 1] for path in paths],
            "elsewhere": paths[:9],
        }
    )
    arguments = {"file": "a.py", "symbol": "one", "new_name": "uno"}
    text = text_of(call(alone, tmp_path, "rename_symbol", **arguments))
    assert len(text) < 8000
    shown = ",".join(map(str, lines[:50])) + " and 50 more"
    assert f"0.py: {shown}; 1 time " in text
    assert "\nOther files with the word one, unchanged: directory/" in text


def test_a_cli_that_does_not_wait_has_no_renames(alone: Alone) -> None:
    names = [tool["name"] for tool in TOOLS]
    assert names[-1] == "rename_symbol"
    questions = Questions(alone.config, alone.emacs, lambda: ["/"], lambda *_: None)
    body = {"directory": "/", "method": "list"}
    rename = {"directory": "/", "method": "call", "name": "rename_symbol"}
    for client in CLIENTS:
        answer = asyncio.run(questions.answer(client, body))
        listed = [tool["name"] for tool in answer["tools"]]
        assert listed == (names if client.awaits_tools else names[:-1])
        assert questions.renames(client, rename) == client.awaits_tools
    assert asyncio.run(questions.answer(CLIENTS[-1], rename))["isError"]


def test_silence_ends(serve_alone: ServeAlone, tmp_path: Path) -> None:
    alone = serve_alone(question_limit=0.2, edit_limit=0.2)
    alone.linked.turn(True)
    result = call(alone, tmp_path, "definition", file="a", symbol="x")
    assert text_of(result) == "Emacs did not answer within 0.2 s; use grep_search"
    result = call(alone, tmp_path, "diagnostics")
    assert text_of(result) == "Emacs did not answer within 0.2 s"
    edited = {"method": "event", "event": edit("/a")}
    assert request(alone.port, alone.token, edited) == (200, {})


@pytest.mark.parametrize(
    ("client", "name", "kind"),
    [
        ("", "BeforeAgent", "prompt"),
        (".qwen", "UserPromptSubmit", "prompt"),
        ("", "AfterAgent", "end"),
        (".qwen", "Stop", "end"),
        ("", "Notification ToolPermission", "question"),
        (".qwen", "Notification permission_prompt", "question"),
        (".qwen", "Notification idle_prompt", "end"),
    ],
)
def test_the_course_of_a_turn_reaches_emacs(
    alone: Alone, client: str, name: str, kind: str
) -> None:
    alone.answer({})
    token = alone.token + client
    name, _, notification = name.partition(" ")
    event = {"hook_event_name": name, "cwd": "/p", "prompt": " Fix it\nplease"}
    event["notification_type"] = notification
    body = {"method": "event", "event": event, "pid": os.getpid()}

    # Emacs may be asked something else between, such as which files it saved.
    def turns() -> list[dict[str, Any]]:
        return [facts for method, facts, _ in alone.emacs.asked if method == "turn"]

    assert request(alone.port, token, body) == (200, {})
    (facts,) = turns()
    assert (facts["event"], facts["prompt"]) == (kind, "Fix it")
    assert facts["pids"][0] == os.getpid()
    assert os.getppid() in facts["pids"]

    if kind == "prompt":
        del event["prompt"]
        assert request(alone.port, token, body) == (200, {})
        assert [facts["event"] for facts in turns()] == ["prompt", "edit"]

    if kind == "question" and client:
        event["notification_type"] = "auth_success"
        assert request(alone.port, token, body) == (200, {})
        assert len(turns()) == 1


def test_the_end_of_a_turn_that_is_reported_after_the_next_prompt_is_left_out(
    alone: Alone,
) -> None:
    alone.answer({})
    idle = {"hook_event_name": "Notification", "notification_type": "idle_prompt"}
    prompt = {"hook_event_name": "UserPromptSubmit", "prompt": "Fix it"}
    for second, event in ((0, prompt), (2, prompt), (1, idle), (3, idle)):
        facts = {"session_id": "s", "timestamp": f"2026-01-02T03:04:0{second}.000Z"}
        body = {"method": "event", "pid": os.getpid()}
        body["event"] = {**event, **facts, "cwd": "/p"}
        assert request(alone.port, f"{alone.token}.qwen", body) == (200, {})
    turns = [facts for method, facts, _ in alone.emacs.asked if method == "turn"]
    assert [facts["event"] for facts in turns] == ["prompt", "prompt", "end"]


def test_a_new_file_of_qwen_code_is_known_by_what_the_model_reads(
    alone: Alone,
) -> None:
    alone.answer({})
    event = edit("/a", originalContent="")
    for said in ("Successfully created and wrote", "Successfully overwrote"):
        event["tool_response"]["llmContent"] = f"{said}: /a."
        body = {"method": "event", "event": event, "pid": os.getpid()}
        assert request(alone.port, f"{alone.token}.qwen", body) == (200, {})
    assert [texts[0] for *_, texts in alone.emacs.asked] == [None, ""]


def test_a_large_edit_reaches_emacs_by_epc(start: Start) -> None:
    emacs = start()
    emacs.call("roots-update", ["/"])
    emacs.call("tools-update", True)
    emacs.epc.answers["ask"] = lambda *_: []
    long = "x" * 1_000_000
    edited = {"method": "event", "event": edit("/a", newContent=long)}
    with ThreadPoolExecutor() as pool:
        result = pool.submit(request, emacs.port, emacs.token, edited)
        kind, _, before, after = emacs.expect("ask")
        assert (kind.value(), before) == ("edited", "old")
        assert Path(after[1]).read_text() == long
        assert Path(after[1]).stat().st_mode & 0o777 == 0o600
        assert result.result(BOUND) == (200, {})


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (
            {"count": 12, "errors": [[3, "a\u00a0b\n\u202e" + "x" * 300, "test"]],
             "others": [["/b.py", 3, [7, "bad", "test"]]] * 6},
            "30 new errors in a\\u0009.py and other files"
            " (a later edit may already fix them):\n"
            "3: error: a b \\u202E" + "x" * 177 + "...\n... 11 more\n"
            + "b.py:7: error: bad [test] (and 2 more there)\n" * 5 + "... 1 more files",
        ),
        (
            {"count": 0, "others": [["/b.py", 1, [7, "bad", None]]]},
            "1 new error in other files (a later edit may already fix it):\n"
            "b.py:7: error: bad",
        ),
    ],
)  # fmt: skip
def test_new_errors_are_a_short_text(alone: Alone, facts: Facts, text: str) -> None:
    alone.answer({"path": "/a\t.py", **facts})
    edited = {"method": "event", "event": edit("/a")}
    output = request(alone.port, alone.token, edited)[1]["hookSpecificOutput"]
    assert output["additionalContext"] == "Emacs sees " + text
