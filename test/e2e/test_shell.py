# SPDX-License-Identifier: GPL-3.0-or-later
"""What the shell commands of real CLIs write is recorded, and can be undone."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from harness.emacs import Emacs, lisp
from harness.gemini import Gemini, type_until
from harness.model import Part, call, say
from harness.needs import needs_copilot, needs_pi, needs_qwen
from harness.wait import BOUND, eventually
from harness.world import World
from test_restart import restart
from test_rules import linked
from test_tools import link_pi, linked_qwen

from test_permissions import linked_copilot

OLD = b"one\r\ntwo\r\nl\xe9\r\n"
LATER = OLD + b"later\r\n"
COMMAND = (
    "sed -i s/two/zwei/ b.txt c.txt; sed -i s/line/LINE/ long.txt; echo new >new.txt; "
    "rm gone.sh; mv name.txt renamed.txt; echo SECRET >.env; "
    # Some CLIs have another event after a failure.
    "exit 3"
)
# The model knows a prompt by its text.
PROMPT_OF_AGENT = "prompt 0 please"
NAMES = ["b.txt", "c.txt", "gone.sh", "long.txt", "name.txt", "new.txt", "renamed.txt"]


def git(world: World, *arguments: str) -> str:
    return world.scratch.git(*arguments)


def repository(world: World) -> None:
    """Make files, and commit them."""
    for name in ("b.txt", "c.txt", "gone.sh"):
        world.file(name, OLD).chmod(0o700 if name == "gone.sh" else 0o755)
    world.file("long.txt", "a line\n" * 500)
    world.file("name.txt", "name\n")
    world.file(".env", "OLD\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")


def hook(world: World, client: str, option: str, **event: Any) -> None:
    """Run the hook of ``client`` for ``event``, as it does."""
    bridge = next(world.scratch.home.glob(".emacs.d/*/extension/__main__.py"))
    given = {"cwd": str(world.project), "session_id": "s", **event}
    subprocess.run(
        [world.tools.python, "-ESs", str(bridge), client, option],
        cwd=world.project,
        env=world.scratch.environment,
        input=json.dumps(given),
        check=True,
        capture_output=True,
        text=True,
    )


def edits(emacs: Emacs) -> list[str]:
    """Return the names of the written files, each with the command."""
    value = emacs.value(
        """(mapcar (lambda (edit)
                     (concat (gemini-companion-edit-name edit) ": "
                             (gemini-companion-edit-command edit)))
                   (gemini-companion-edits))"""
    )
    return sorted(value)


def has(file: Path, content: bytes) -> None:
    eventually(lambda: file.exists() and file.read_bytes() == content, file.name)


def undo_all(emacs: Emacs) -> None:
    emacs.eval(
        """(progn (require 'gemini-companion-undo)
                  (dolist (edit (gemini-companion-edits))
                    (unless (eq 'undone (gemini-companion-changes-status edit))
                      (e2e-undo-edits (list edit)))))"""
    )


def runs(world: World, cli: Gemini, command: Part) -> None:
    """Let ``cli`` run ``command``.

    Another program writes before that: what it has written is there again after an undo
    only if the CLI has waited for the snapshot before the command.
    """
    cli.model.script(command, say("shell done"))
    cli.model.answers.clear()
    cli.prompt()
    (world.project / "c.txt").write_bytes(LATER)
    cli.model.answers.set()
    cli.wait_for("shell done")


def is_recorded_and_undone(world: World, emacs: Emacs) -> None:
    """Check what COMMAND has written, and undo it by keys."""
    emacs.holds("(= 7 (length (gemini-companion-edits)))")
    assert edits(emacs) == [f"{name}: {COMMAND}" for name in NAMES]
    files = filter(Path.is_file, world.project.iterdir())
    texts = {file.name: file.read_bytes() for file in files}
    assert texts["b.txt"] == OLD.replace(b"two", b"zwei")
    assert texts["c.txt"] == LATER.replace(b"two", b"zwei")
    assert texts["long.txt"] == b"a LINE\n" * 500
    assert texts["renamed.txt"] == b"name\n"
    assert not {"gone.sh", "name.txt"} & texts.keys()
    emacs.command("gemini-companion-turn-page")
    emacs.holds("""(get-buffer-window "*gemini*")""")
    emacs.eval(TURN_ROW)
    emacs.keys("C-u", "u")
    emacs.wait_for("as a whole")
    emacs.keys("y")
    emacs.wait_for("Undid 7 edits")
    for name, text in (("b.txt", OLD), ("c.txt", LATER), ("gone.sh", OLD)):
        has(world.project / name, text)
        modes = (world.project / name).stat().st_mode & 0o777
        assert modes == (0o700 if name == "gone.sh" else 0o755)
    assert git(world, "status", "--short") == " M .env\n M c.txt\n"
    assert git(world, "diff", "--stat", "c.txt").endswith("1 insertion(+)\n")
    stored = b"".join(map(stored_in, world.scratch.tmp.glob("*/*/objects")))
    assert LATER in stored
    assert b"SECRET" not in stored


def stored_in(objects: Path) -> bytes:
    """Return the contents of all objects of a store."""
    command = ["git", "cat-file", "--batch", "--batch-all-objects"]
    environ = {**os.environ, "GIT_DIR": str(objects.parent)}
    process = subprocess.run(command, env=environ, check=True, capture_output=True)
    return process.stdout


def interrupted_is_recorded(
    world: World, emacs: Emacs, cli: Gemini, shell: Callable[..., Part]
) -> None:
    """Let ``cli`` run a command that does not end, and type Escape."""
    command = "echo esc >esc.txt; tail -f /dev/null"
    cli.model.script(shell(command), say("never"))
    cli.prompt()
    eventually((world.project / "esc.txt").exists, "the command runs")
    type_until(
        lambda: cli.terminal.keys("Escape"),
        lambda: f"esc.txt: {command}" in edits(emacs),
        "Escape taken",
    )
    # Copilot CLI leaves it running, and would wait for it.
    for process in world.scratch.processes("tail -f /dev/null"):
        process.kill()


def background_is_recorded(
    world: World, emacs: Emacs, cli: Gemini, shell: Callable[..., Part]
) -> None:
    """Let ``cli`` run a command in the background, which writes in its turn."""
    command = "while [ ! -e go ]; do sleep 0.1; done; echo late >late.txt"
    cli.model.script(shell(command, is_background=True), say("background done"))
    count = len(cli.model.requests)
    cli.model.answers.clear()
    cli.prompt()
    cli.model.answer_those()
    eventually(lambda: len(cli.model.requests) > count + 1, "the command has returned")
    (world.project / "go").touch()
    eventually((world.project / "late.txt").exists, "the command has written")
    cli.model.answers.set()
    cli.wait_for("background done")
    eventually(lambda: f"late.txt: {command}" in edits(emacs), "it is recorded")


def agent_is_recorded(
    world: World,
    emacs: Emacs,
    cli: Gemini,
    agent: tuple[Part, Part],
    shell: Callable[..., Part],
) -> None:
    """Let ``cli`` call an agent of its own, which runs a command.

    ``agent`` are the call and how the agent ends it.
    """
    command = "echo agent >agent.txt"
    begin, end = agent
    count = len(cli.model.requests)
    cli.model.script(begin, shell(command), end, say("turn done"))
    cli.prompt()
    eventually(lambda: f"agent.txt: {command}" in edits(emacs), "it is recorded")
    cli.wait_for("turn done")
    # The agent has a conversation of its own.
    of_cli, of_agent, *_ = map(json.dumps, cli.model.requests[count:])
    prompt = r"prompt [1-9]\d* please"
    assert re.search(prompt, of_cli)
    assert not re.search(prompt, of_agent)
    assert PROMPT_OF_AGENT in of_agent


def are_recorded(
    world: World,
    emacs: Emacs,
    cli: Gemini,
    name: str,
    shell: Callable[..., Part],
    agent: tuple[Part, Part],
    tool: str,
) -> None:
    """Let ``cli``, ``name`` in the rows, write in each way that is no edit.

    ``tool`` is its name for the tool of an MCP server.
    """
    world.row = f"{name}: waits before a command, reports its failure"
    runs(world, cli, shell(COMMAND))
    is_recorded_and_undone(world, emacs)
    world.row = f"{name}: what tools of MCP servers write"
    before = edits(emacs)
    cli.is_free(call(tool))
    eventually(lambda: f"b.txt: {tool}" in edits(emacs), "it is recorded")
    all_edits = sorted([*before, f"b.txt: {tool}"])
    assert edits(emacs) == all_edits
    undo_all(emacs)
    has(world.project / "b.txt", OLD)
    # Nothing came with the end of the turn.
    assert edits(emacs) == all_edits
    world.row = f"{name}: command in the background"
    background_is_recorded(world, emacs, cli, shell)
    world.row = f"{name}: Escape while a command runs"
    interrupted_is_recorded(world, emacs, cli, shell)
    world.row = f"{name}: command of a sub-agent"
    agent_is_recorded(world, emacs, cli, agent, shell)


def shell_of_gemini(command: str, is_background: bool = False) -> Part:
    return call(
        "run_shell_command",
        command=command,
        description="Do it",
        is_background=is_background,
    )


@pytest.mark.shared("yolo")
@pytest.mark.contract("Gemini CLI: what shell commands write")
def test_gemini_cli(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    emacs.eval(f"(progn (find-file {lisp(world.project / 'b.txt')}) nil)")
    agent = call("invoke_agent", agent_name="generalist", prompt=PROMPT_OF_AGENT)
    agents = agent, call("complete_task", result={"response": "agent done"})
    are_recorded(world, emacs, cli, "Gemini CLI", shell_of_gemini, agents, "mcp_w_put")


@needs_qwen
@pytest.mark.shared("linked-qwen")
@pytest.mark.contract("Qwen Code: what shell commands write")
def test_qwen_code(world: World) -> None:
    emacs, _, cli = linked_qwen(world, world.file("a.txt", "a\n"))
    repository(world)
    cli.begin("yolo")
    agent = call(
        "agent",
        subagent_type="general-purpose",
        description="Do it",
        prompt=PROMPT_OF_AGENT,
        run_in_background=False,
    )
    agents = agent, say("agent done")
    are_recorded(world, emacs, cli, "Qwen Code", shell_of_gemini, agents, "mcp__w__put")


@pytest.mark.contract("Pi: what shell commands write")
@needs_pi
@pytest.mark.shared("linked-pi")
def test_pi(world: World) -> None:
    emacs, _, cli = world.pi_pair(world.file("a.txt", "a\n"))
    link_pi(world, emacs)
    repository(world)

    def shell(command: str) -> Part:
        return call("bash", command=command)

    world.row = "Pi: waits before a command, reports its failure"
    runs(world, cli, shell(COMMAND))
    is_recorded_and_undone(world, emacs)
    world.row = "Pi: Escape while a command runs"
    interrupted_is_recorded(world, emacs, cli, shell)


@needs_copilot
@pytest.mark.shared("linked-copilot")
@pytest.mark.contract("Copilot CLI: what shell commands write")
def test_copilot_cli(world: World) -> None:
    emacs, cli = linked_copilot(world)
    repository(world)
    cli.allow_all()

    def shell(command: str, is_background: bool = False) -> Part:
        mode = "async" if is_background else "sync"
        return call("bash", command=command, description="Do it", mode=mode)

    agent = call(
        "task",
        agent_type="general-purpose",
        name="it",
        description="Do it",
        prompt=PROMPT_OF_AGENT,
        mode="sync",
    )
    agents = agent, say("agent done")
    are_recorded(world, emacs, cli, "Copilot CLI", shell, agents, "w-put")


@pytest.mark.shared("yolo")
def test_save_of_the_user_is_not_of_the_command(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    mine = world.file("mine.txt", "mine\n")
    emacs.eval(f"(progn (find-file {lisp(mine)}) nil)")
    command = (
        "touch started; while [ ! -e saved ]; do sleep 0.1; done; echo cli >>mine.txt"
    )
    cli.model.script(
        call("run_shell_command", command=command, description="Do it"),
        say("slow done"),
    )
    cli.prompt()
    eventually((world.project / "started").exists, "started")
    emacs.eval(
        """(with-current-buffer "mine.txt" (insert "user\\n") (save-buffer) nil)"""
    )
    (world.project / "saved").touch()
    cli.wait_for("slow done")
    emacs.holds("""(member "mine.txt" (mapcar #'gemini-companion-edit-name
                                              (gemini-companion-edits)))""")
    undo_all(emacs)
    has(mine, b"user\nmine\n")


@pytest.mark.shared("yolo")
def test_only_what_needs_no_warning_is_undone_by_one_key(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    for name in "xyz":
        world.file(f"{name}.txt", "one\ntwo\nthree\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "more")
    cli.is_free(
        call(
            "run_shell_command",
            command="sed -i s/two/zwei/ x.txt y.txt z.txt; echo new >new.txt",
            description="Do it",
        )
    )
    emacs.becomes("(gemini-companion-changes-left)", 4)
    # The user corrects a line of the command.
    emacs.eval(
        f"""(with-current-buffer (find-file-noselect
                                  {lisp(world.project / "x.txt")})
              (search-forward "zwei")
              (insert " of mine")
              (save-buffer))"""
    )
    files = [world.project / f"{name}.txt" for name in ("x", "y", "z", "new")]
    before = [file.read_text() for file in files]
    # The keys of a walk are not those of its question.
    emacs.command("gemini-companion-next-change")
    emacs.keys("C-u", "U")
    emacs.wait_for("(y, s, n, ?)")
    emacs.keys("?")
    emacs.holds("""(get-buffer-window "*gemini files*")""")
    emacs.keys("n")
    emacs.wait_for("Not undone")
    emacs.holds("""(not (get-buffer "*gemini files*"))""")
    assert [file.read_text() for file in files] == before
    emacs.command("gemini-companion-turn-page")
    emacs.holds("""(get-buffer-window "*gemini*")""")
    emacs.eval(TURN_ROW)
    emacs.keys("u")
    emacs.wait_for("takes 1 line, maybe yours")
    emacs.wait_for("(y, s, n, ?)")
    emacs.keys("s")
    emacs.wait_for("left out: ")
    after = [before[0], *["one\ntwo\nthree\n"] * 2, before[3]]
    assert [file.read_text() for file in files] == after
    emacs.keys("C-/")
    emacs.wait_for("Taken back")
    assert [file.read_text() for file in files] == before
    # Back to before the turn, and C-g at the question.
    emacs.eval(TURN_ROW)
    emacs.keys("B")
    emacs.wait_for("(y, s, n, ?)")
    emacs.keys("C-g")
    emacs.holds("(not (active-minibuffer-window))")
    assert [file.read_text() for file in files] == before
    emacs.eval(TURN_ROW)
    emacs.keys("B")
    emacs.wait_for("(y, s, n, ?)")
    emacs.keys("y")
    emacs.wait_for("nothing left")
    assert [file.exists() and file.read_text() for file in files] == [
        *["one\ntwo\nthree\n"] * 3,
        False,
    ]


@pytest.mark.shared("yolo")
def test_names_of_the_shell_are_those_of_files_in_the_project(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    home = {"notes.txt": "password\n", "image": "\0mine", "gone/in.txt": "mine\n"}
    for name, text in home.items():
        file = world.home / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    command = (
        "mkdir -p '~/gone'; echo x >'~/notes.txt'; printf '\\0' >'~/image'; "
        "echo x >'~/gone/in.txt'; echo x >'$HOME'"
    )
    cli.is_free(shell_of_gemini(command))
    emacs.holds("(= 4 (length (gemini-companion-edits)))")
    assert (world.project / "~" / "notes.txt").read_text() == "x\n"
    emacs.command("gemini-companion-turn-page")
    emacs.holds("""(get-buffer-window "*gemini*")""")
    emacs.wait_for("~/notes.txt")
    emacs.eval(TURN_ROW)
    emacs.keys("C-u", "u")
    emacs.wait_for("as a whole")
    emacs.keys("y")
    emacs.wait_for("Undid 4 edits")
    assert {"~", "$HOME"}.isdisjoint(os.listdir(world.project))
    for name, text in home.items():
        assert (world.home / name).read_text() == text
    cli.is_free()
    emacs.keys("C-/")
    emacs.wait_for("Taken back")
    has(world.project / "~" / "image", b"\0")
    has(world.project / "~" / "notes.txt", b"x\n")
    cli.is_free()
    for name, text in home.items():
        assert (world.home / name).read_text() == text
    requests = json.dumps(cli.model.requests)
    assert "The user has undone" in requests
    assert "password" not in requests


SCRIPT = r"""
mkdir -p made/deep
echo new >made/deep/new.txt
sed -i s/b/B/ changed.txt
rm -r old
mv name.txt renamed.txt
sed -i s/line/LINE/ long.txt
sed -i s/two/zwei/ crlf.txt latin.txt
printf '\0\2' >image.bin
printf more >>large.txt
chmod +x run.txt
ln -sfn long.txt link
"""
MANY = "sed -i s/a/b/ many/*"
TURN_ROW = """(with-current-buffer "*gemini*"
  (goto-char (point-min))
  (while (not (eq 'turn (gemini-companion-overview-page-kind)))
    (forward-line))
  (set-window-point (get-buffer-window) (point))
  t)"""


def contents(world: World) -> dict[str, object]:
    """Return what each file of the project has, and its modes."""
    return {
        str(path.relative_to(world.project)): os.readlink(path)
        if path.is_symlink()
        else path.is_file() and (path.stat().st_mode, path.read_bytes())
        for path in sorted(world.project.rglob("*"))
        if ".git" not in path.parts
    }


@pytest.mark.shared("yolo")
def test_turn_of_commands_only_is_undone_by_keys(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    world.file("changed.txt", "a\nb\nc\n")
    world.file("old/deep/gone.txt", "gone\r\n").chmod(0o755)
    world.file("name.txt", "name\n")
    world.file("long.txt", "a line\n" * 500)
    world.file("crlf.txt", b"one\r\ntwo\r\n")
    world.file("latin.txt", OLD.replace(b"\r", b""))
    world.file("image.bin", b"\0\1")
    world.file("large.txt", "a line\n" * 1_000_000)
    world.file("run.txt", "run\n")
    (world.project / "link").symlink_to("changed.txt")
    for number in range(30):
        world.file(f"many/{number}.c", f"a {number}\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")
    before = contents(world)
    script = world.scratch.root / "work.sh"
    script.write_text(SCRIPT)
    for name in ("changed.txt", "crlf.txt"):
        emacs.eval(f"(progn (find-file {lisp(world.project / name)}) nil)")
    cli.is_free(
        call("run_shell_command", command=f"sh {script}", description="Do it"),
        call("run_shell_command", command=MANY, description="Do it"),
    )
    emacs.holds(
        """(equal '("2 files, 1 link, mode of 1 file" "30 files")
              (mapcar #'gemini-companion-edit-name
                      (seq-filter #'gemini-companion-unmarked-p
                                  (gemini-companion-edits))))"""
    )
    # Two new files, two deleted ones, three changes; one is not in UTF-8.
    after = contents(world)
    assert after["made/deep/new.txt"] != before.get("made/deep/new.txt")
    emacs.becomes("(gemini-companion-changes-left)", 7)
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("30 files")
    emacs.eval(TURN_ROW)
    emacs.keys("C-u", "u")
    emacs.wait_for("as a whole")
    emacs.keys("y")
    emacs.wait_for("Undid 10 edits")
    assert contents(world) == before
    assert git(world, "status", "--short") == ""
    # All of that is one decision.
    emacs.keys("C-/")
    emacs.wait_for("Taken back")
    eventually(lambda: contents(world) == after, "the files of the commands")


def on_row(emacs: Emacs, text: str) -> None:
    """Go to the row with ``text`` in the overview."""
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for(text)
    emacs.holds(
        f"""(with-current-buffer "*gemini*"
              (goto-char (point-min))
              (when (re-search-forward {lisp("written .*" + text)} nil t)
                (set-window-point (get-buffer-window) (line-beginning-position))
                t))"""
    )


def undoes(emacs: Emacs, text: str, said: str, *others: str) -> None:
    """Undo the row with ``text`` by keys, with a yes; then ``said`` is displayed.

    ``others`` are keys that were typed for something else, and are no yes.
    """
    on_row(emacs, text)
    emacs.keys("u")
    emacs.wait_for("(y, n, ?)")
    for key in others:
        # Emacs says for three seconds that it is no answer.
        emacs.keys(key)
        emacs.wait_for("(y, n, ?)")
    emacs.keys("?")
    emacs.holds("""(get-buffer-window "*gemini files*")""")
    emacs.keys("y")
    emacs.wait_for(said)
    emacs.holds("""(not (get-buffer "*gemini files*"))""")


@pytest.mark.shared("yolo")
def test_files_of_a_command_are_undone_by_the_server(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    trash = world.home / ".local/share/Trash"
    shutil.rmtree(trash, ignore_errors=True)
    for number in range(30):
        world.file(f"many/{number}.c", f"a {number}\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")
    before = contents(world)
    script = world.scratch.root / "make.sh"
    script.write_text("mkdir made; for i in $(seq 25); do printf '\\0' >made/$i; done")
    cli.is_free(
        call("run_shell_command", command=MANY, description="Do it"),
        call("run_shell_command", command=f"sh {script}", description="Do it"),
    )
    emacs.holds("(= 2 (length (gemini-companion-edits)))")
    after = contents(world)
    unsaved = world.project / "many/3.c"
    emacs.eval(f"(progn (find-file {lisp(unsaved)}) (insert ?x) nil)")
    said = "Undid 29 files; many/3.c has unsaved changes"
    undoes(emacs, "30 files", said, "Space", "Enter")
    assert unsaved.read_text() == "b 3\n"
    emacs.eval("""(with-current-buffer "3.c" (revert-buffer t t) nil)""")
    undoes(emacs, "30 files", "Undid 1 file")
    undoes(emacs, "25 files", "Undid 25 files")
    assert contents(world) == before
    assert {file.name for file in trash.joinpath("files").rglob("*")} == {
        "made",
        *(str(number) for number in range(1, 26)),
    }
    for said in ("Restored 25 files", "Restored 1 file", "Restored 29 files"):
        emacs.keys("C-/")
        emacs.wait_for(said)
    assert contents(world) == after
    (store,) = world.scratch.tmp.glob("*/*/objects")
    elsewhere = store.rename(store.with_name("elsewhere"))
    undoes(emacs, "25 files", "Nothing undone; 25 files: the snapshots were deleted")
    assert contents(world) == after
    # In a shared world, the next test needs it.
    elsewhere.rename(store)


def extension(emacs: Emacs) -> None:
    """Let Emacs write its extension as after an update: no CLI is linked to it."""
    emacs.eval(
        """(progn (require 'gemini-companion-tools)
                  (make-directory (gemini-companion-install-extension-directory) t)
                  (gemini-companion-part-ready 'tools 'started)
                  nil)"""
    )


# The CLI waits for a hook for a minute at most.
SOON = 60


def around(world: World, begins: bool) -> None:
    """Run the hook before or after a command, which must end soon."""
    began = time.monotonic()
    event, option = ("BeforeTool", "--call") if begins else ("AfterTool", "--hook")
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "make"}}
    hook(world, "gemini", option, hook_event_name=event, **call)
    assert time.monotonic() - began < SOON


def serves(emacs: Emacs) -> None:
    """Wait until the server has answered a request.

    The first one loads the library that serves them, which may take longer on a busy
    machine than a hook waits; a CLI that is connected has sent one.
    """
    port = emacs.value("(plist-get (gemini-companion-server-info) :port)")
    with closing(HTTPConnection("127.0.0.1", port, BOUND)) as connection:
        connection.request("GET", "/")
        connection.getresponse()


def writes(world: World, emacs: Emacs, text: str) -> None:
    """Let a command write TEXT to a file, which is recorded."""
    around(world, begins=True)
    (world.project / "b.txt").write_text(text)
    around(world, begins=False)
    emacs.holds(f"""(equal {lisp(text)} (gemini-companion-edit-after
                                         (car (last (gemini-companion-edits)))))""")


@pytest.mark.shared("hooks")
def test_renamed_file_stays_while_its_old_name_is_taken(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", "a\n"))
    extension(emacs)
    repository(world)
    serves(emacs)
    for old, content in ("name.txt", b"name\n"), ("name.bin", b"\0name\n"):
        text = old == "name.txt"
        taken, moved = (
            world.file(old, content),
            world.project / old.replace("name", "moved"),
        )
        around(world, begins=True)
        taken.rename(moved)
        around(world, begins=False)
        emacs.holds(f"(= {2 if text else 3} (length (gemini-companion-edits)))")
        taken.write_bytes(b"others\n")
        if text:
            undoes(emacs, moved.name, f"{old}, which must be created again first")
        else:
            undoes(emacs, "2 files", "Nothing undone")
            emacs.wait_for(
                f"{moved.name} was renamed from {old}, which cannot be created again"
            )
        assert taken.read_bytes() == b"others\n"
        assert moved.read_bytes() == content
        # Once nobody has the name, both are as they were.
        taken.unlink()
        if text:
            on_row(emacs, old)
            emacs.keys("u")
            eventually(taken.exists, "the old name")
            undoes(emacs, moved.name, "Deleted")
        else:
            undoes(emacs, "2 files", "Undid 2 files")
        has(taken, content)
        eventually(lambda: not moved.exists(), "the new name is gone")  # noqa: B023


@pytest.mark.shared("hooks")
def test_cli_goes_on_if_emacs_hangs_or_the_server_is_killed(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", "a\n"))
    extension(emacs)
    repository(world)
    serves(emacs)
    writes(world, emacs, "1\n")
    os.kill(emacs.pid, signal.SIGSTOP)
    try:
        around(world, begins=True)
        around(world, begins=False)
    finally:
        os.kill(emacs.pid, signal.SIGCONT)
    writes(world, emacs, "2\n")
    around(world, begins=True)
    many = [world.file(f"many/{number}.c", "new\n") for number in range(30)]
    around(world, begins=False)
    emacs.holds("(seq-find #'gemini-companion-unmarked-p (gemini-companion-edits))")
    around(world, begins=True)
    info = "(plist-get (gemini-companion-server-info) :pid)"
    server = emacs.value(info)
    os.kill(server, signal.SIGKILL)
    around(world, begins=False)
    eventually(lambda: emacs.value(info) not in (None, server), "a new server")
    serves(emacs)
    undoes(emacs, "30 files", "Nothing undone; 30 files: the snapshots were deleted")
    assert all(map(Path.exists, many))
    writes(world, emacs, "3\n")


@pytest.mark.shared("hooks")
def test_cli_goes_on_if_git_hangs(world: World) -> None:
    programs = world.scratch.root / "programs"
    programs.mkdir()
    hangs = programs / "hangs"
    path = f"{programs}:{world.scratch.environment['PATH']}"
    fake = programs / "git"
    fake.write_text(
        f"""#!/bin/sh
[ ! -e {hangs} ] || {{ touch {hangs}.now; sleep 100; }}
PATH={world.scratch.environment["PATH"]} exec git "$@"
"""
    )
    fake.chmod(0o755)
    emacs = world.emacs(world.file("a.txt", "a\n"))
    extension(emacs)
    repository(world)
    emacs.eval(f'(setenv "PATH" {lisp(path)})')
    restart(emacs, world.scratch)
    serves(emacs)
    writes(world, emacs, "1\n")
    hangs.touch()
    around(world, begins=True)
    around(world, begins=False)
    assert programs.joinpath("hangs.now").exists()
    emacs.eval(f'(setenv "PATH" {lisp(world.scratch.environment["PATH"])})')
    restart(emacs, world.scratch)


def undo_turn(emacs: Emacs, said: str) -> None:
    """Undo all of the last turn by keys; return when Emacs says that it has."""
    emacs.command("gemini-companion-turn-page")
    emacs.holds("""(get-buffer-window "*gemini*")""")
    emacs.eval(TURN_ROW)
    emacs.keys("C-u", "u")
    emacs.wait_for("as a whole")
    emacs.keys("y")
    emacs.wait_for(said)


# It takes rules away, moves files that nobody has looked at, and writes a new one.
UNSEEN = """
sed -i /out/d .gitignore
sed -i /key/d .geminiignore
cp -p build/x.js copy.js
rm -r lib/.git
echo cli >new.c
"""


@pytest.mark.shared("yolo")
@pytest.mark.contract("Gemini CLI: files at which no snapshot has looked")
def test_what_no_snapshot_has_looked_at_stays(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    world.file(".gitignore", "out/\nbuild/\n*.o\n")
    world.file(".geminiignore", "key.txt\n.env\n")
    world.file("mine.txt", "mine\n")
    for name in ("conf/.env", "key.txt"):
        world.file(name, "committed\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")
    names = ["key.txt", "build/x.js", "build/y.js", "lib/l.txt", ".env"]
    for name in [*names, *(f"out/{number}" for number in range(27))]:
        world.file(name, f"mine {name}\n")
    git(world, "-C", "lib", "init", "-q")
    time.sleep(0.1)
    script = world.scratch.root / "work.sh"
    script.write_text(UNSEEN)
    before = contents(world)
    # Emacs makes a lock and an auto-save file meanwhile.
    mine = lisp(world.project / "mine.txt")
    command = f"touch started; while [ ! -e go ]; do sleep 0.1; done; sh {script}"
    move = shell_of_gemini("mv build/y.js src.js; echo >src.o")
    cli.model.script(shell_of_gemini(command), move, say("unseen done"))
    cli.prompt()
    eventually((world.project / "started").exists, "started")
    emacs.eval(
        f"""(with-current-buffer (find-file-noselect {mine})
              (insert "more\\n") (do-auto-save) nil)"""
    )
    (world.project / "go").touch()
    cli.wait_for("unseen done")
    emacs.holds("(seq-find #'gemini-companion-unmarked-p (gemini-companion-edits))")
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("moved here")
    undo_turn(emacs, "Undid")
    after = contents(world)
    # What is new by proof is gone, and what was moved is not.
    assert "new.c" not in after
    assert after["copy.js"] == before["build/x.js"]
    assert after["src.js"] == before.pop("build/y.js")
    for name, content in before.items():
        if not name.startswith("lib/.git"):
            assert after[name] == content, name
    assert {"#mine.txt#", ".#mine.txt"} <= after.keys()


@pytest.mark.shared("yolo")
@pytest.mark.contract("Gemini CLI: commands that the user refuses")
def test_refused_command_owns_nothing(world: World) -> None:
    emacs, _, cli = linked(world, "default", "")
    repository(world)
    cli.model.script(shell_of_gemini("rm -r src"), say("never"))
    cli.prompt()
    cli.wait_for("Allow execution")
    # Another program writes while it asks, and after that.
    (world.project / "b.txt").write_bytes(LATER)
    cli.interrupt("Escape", "Allow execution")
    (world.project / "c.txt").write_bytes(LATER)
    cli.is_free()
    assert emacs.value("(length (gemini-companion-edits))") == 0
    undo_all(emacs)
    has(world.project / "b.txt", LATER)
    has(world.project / "c.txt", LATER)
    # A command that is allowed is recorded.
    cli.model.script(shell_of_gemini("echo cli >new.txt"), say("allowed done"))
    cli.prompt()
    cli.wait_for("Allow execution")
    cli.answer("once")
    cli.wait_for("allowed done")
    eventually(lambda: edits(emacs) == ["new.txt: echo cli >new.txt"], "recorded")


@pytest.mark.shared("yolo")
@pytest.mark.contract("Gemini CLI: what a command takes from the user")
def test_lines_of_the_user_that_a_command_takes_come_back(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    file = world.project / "b.txt"
    text = "one\ntwo\n"
    cli.is_free(call("write_file", file_path=str(file), content=text))
    eventually(lambda: file.read_text() == text, "written")
    git(world, "commit", "-qam", "y")
    emacs.eval(f"(progn (find-file {lisp(file)}) nil)")
    emacs.holds(
        """(equal "one\\ntwo\\n" (with-current-buffer "b.txt" (buffer-string)))"""
    )
    emacs.eval(
        """(with-current-buffer "b.txt"
             (goto-char (point-min)) (insert "user\\n") (save-buffer) nil)"""
    )
    # The text that the edit tool has written comes back.
    cli.is_free(shell_of_gemini("git checkout b.txt"))
    eventually(lambda: "b.txt: git checkout b.txt" in edits(emacs), "it is recorded")
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("by `git checkout")
    emacs.keys("u")
    # The edit tool has kept the line ends of the file.
    has(file, b"user\r\none\r\ntwo\r\n")


@pytest.mark.shared("yolo")
def test_save_that_fails_and_a_busy_emacs_give_nothing_to_a_command(
    world: World,
) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    mine, other = world.file("mine.txt", "mine\n"), world.file("other.txt", "other\n")
    started, saved = world.project / "started", world.project / "saved"
    for file in (mine, other):
        emacs.eval(f"(progn (find-file {lisp(file)}) nil)")
    command = (
        "touch started; while [ ! -e saved ]; do sleep 0.1; done; "
        "echo cli >>mine.txt; echo cli >>other.txt"
    )
    cli.model.script(shell_of_gemini(command), say("first done"))
    cli.prompt()
    eventually(started.exists, "started")
    # The disk is full while the user saves.
    emacs.eval(
        """(with-current-buffer "mine.txt"
             (insert "user\\n")
             (let ((write-contents-functions (list (lambda () (error "Full")))))
               (ignore-errors (save-buffer)))
             (set-buffer-modified-p nil)
             (revert-buffer t t t)
             nil)"""
    )
    saved.touch()
    cli.wait_for("first done")
    eventually(lambda: f"mine.txt: {command}" in edits(emacs), "it is recorded")
    undo_turn(emacs, "Undid 4 edits")
    has(mine, b"mine\n")
    has(other, b"other\n")
    # Emacs does not answer for longer than the server waits.
    cli.model.script(shell_of_gemini(command), say("second done"))
    cli.prompt()
    eventually(started.exists, "started")
    emacs.eval(
        """(with-current-buffer "other.txt"
             (revert-buffer t t t) (insert "user\\n") (save-buffer) nil)"""
    )
    os.kill(emacs.pid, signal.SIGSTOP)
    try:
        saved.touch()
        cli.wait_for("second done")
    finally:
        os.kill(emacs.pid, signal.SIGCONT)
    # It may have answered at the last moment.
    emacs.holds(
        """(or (gemini-companion-part-findings 'shell "/")
               (< 4 (length (gemini-companion-edits))))"""
    )
    undo_all(emacs)
    assert other.read_bytes().startswith(b"user\nother\n")


@pytest.mark.shared("yolo")
def test_excluded_file_whose_directory_goes_is_neither_shown_nor_restored(
    world: World,
) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    for name in ("conf/.env", "conf/plain.txt"):
        world.file(name, f"committed {name}\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")
    cli.is_free(shell_of_gemini("rm -r conf; echo cli >conf"))
    emacs.holds("(seq-find #'gemini-companion-unmarked-p (gemini-companion-edits))")
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("1 file moved here, 1 removed, not kept")
    assert "committed conf/.env" not in emacs.screen()
    undo_turn(emacs, "stays")
    # The new file is in the place of the directory.
    assert (world.project / "conf").read_text() == "cli\n"
