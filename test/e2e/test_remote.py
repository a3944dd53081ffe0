# SPDX-License-Identifier: GPL-3.0-or-later
"""CLIs on another host: the real CLIs there, Emacs here, TRAMP and ssh between."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from harness import gemini, qwen
from harness.emacs import OLDEST, Emacs, Reviews, lisp
from harness.gemini import CONNECTED, Gemini
from harness.model import read_file, say, write_file
from harness.needs import needs_qwen
from harness.qwen import Qwen, stays_connected
from harness.remote import QUESTION, Host, why_not
from harness.scratch import Scratch
from harness.wait import eventually, wait_until_saved
from harness.world import World
from test_context import active
from test_restart import restart

REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

# What Tramp sends, and what it sends although the user has called no command.
CALLS = """
(defvar e2e-tramp nil)
(defvar e2e-tramp-unasked nil)
(advice-add 'tramp-send-command :before
            (lambda (_ command &rest _)
              (push command e2e-tramp)
              (let ((functions (mapcar #'cadr (backtrace-frames))))
                (when (or (memq 'timer-event-handler functions)
                          (not (or (memq 'command-execute functions)
                                   (memq 'e2e-answer functions))))
                  (push (cons command functions) e2e-tramp-unasked)))))
"""

UNDO = """
(ignore-errors
  (require 'gemini-companion-undo)
  (null (mapc (lambda (edit) (e2e-undo-edits (list edit)))
              (seq-remove #'gemini-companion-undo-unwritten
                          (reverse (gemini-companion-edits))))))
"""

LAST = "(car (last (gemini-companion-edits)))"
UNDO_LAST = f"""
(ignore-errors
  (require 'gemini-companion-undo)
  (or (gemini-companion-undo-unwritten {LAST})
      (ignore (e2e-undo-edits (list {LAST})))))
"""

HostOf = Callable[..., Host]


@pytest.fixture
def host_of(world: World) -> Iterator[HostOf]:
    made: list[Host] = []

    def host_of(name: str, method: str = "docker", delay: float = 0) -> Host:
        if reason := why_not(method):
            pytest.skip(reason)
        made.append(Host(world.scratch, name, method, delay))
        return made[-1]

    yield host_of
    for emacs in world.emacsen:
        if emacs.terminal.is_open():
            unasked = emacs.value("(mapcar #'prin1-to-string e2e-tramp-unasked)")
            assert not unasked, unasked[-1]
        emacs.quit()
    eventually(lambda: not world.scratch.servers(), "the server is gone")
    eventually(lambda: not outposts(world.scratch), "no outpost")
    for host in made:
        assert not host.discovery_files()
        host.close()


@pytest.fixture
def far(host_of: HostOf) -> Host:
    return host_of("far")


def outposts(scratch: Scratch) -> list[psutil.Process]:
    return scratch.processes("Buffer.from(process.argv[1]")


def start(world: World, far: Host, *files: Path) -> tuple[Emacs, Reviews]:
    terminal = "(setq gemini-companion-terminal 'term)"
    emacs = world.emacs(extra=far.init + CALLS + terminal)
    far.visit(emacs, *files)
    return emacs, Reviews(emacs)


def run(world: World, emacs: Emacs, far: Host, *questions: str) -> Gemini:
    cli = world.run(emacs, "gemini", *questions, host=f"{far.title}:")
    emacs.holds("(gemini-companion-sessions)", "a session")
    cli.wait_until_connected()
    return cli


def by_hand(world: World, host: Host, is_qwen: bool) -> Gemini:
    """Start a CLI in ``host`` outside Emacs, which was connected before."""
    model, name = world.model(), f"cli-{host.name}"
    module = qwen if is_qwen else gemini
    program = module.script(world.tools, world.scratch, model, name)
    values = {**gemini.in_container(), "QWEN_CODE_NO_RELAUNCH": "1"}
    assigned = [f"{key}={value}" for key, value in values.items()]
    command = [str(host.program), host.name, "env", *assigned, str(program)]
    terminal = world.tmux.start(name, command, world.scratch.root, {}, gemini.SIZE)
    return (Qwen if is_qwen else Gemini)(terminal, model)


def in_buffer(host: Host, file: Path, code: str) -> str:
    """Return Lisp for ``code`` in the buffer that visits ``file`` there."""
    buffer = f"(get-file-buffer {lisp(host.remote(file))})"
    return f"(with-current-buffer {buffer} {code})"


def text_of(host: Host, file: Path) -> str:
    return in_buffer(host, file, "(buffer-string)")


def test_run_connects_there_and_an_accepted_text_is_written_there(
    world: World, host_of: HostOf
) -> None:
    far = host_of("far", "ssh", delay=0.05)
    here = world.file("a.txt", "here\n")
    there = far.file("a.txt", "one\ntwo\n")
    emacs, reviews = start(world, far, there)

    cli = run(world, emacs, far, QUESTION)
    assert CONNECTED in cli.ide_status()
    # Only files of the host are in the context, by their names there.
    cli.has_context(active(there))

    # Nothing of a review waits for the other host.
    emacs.eval("(setq e2e-tramp nil)")
    reviews.proposed(cli, there, write_file(there, "one\n2\n"), say("done"))
    emacs.wait_for("ssh:far:a.txt")
    emacs.wait_for("two")
    reviews.edit("2", "mine")
    reviews.accept()
    cli.wait_for("done")
    emacs.becomes(text_of(far, there), "one\nmine\n")
    assert (far.project / "a.txt").read_text() == "one\nmine\n"
    # Two reverts of one file, and of a new one that is not visited.
    reviews.accepted(cli, there, write_file(there, "three\n"))
    emacs.becomes(text_of(far, there), "three\n")
    new = world.project / "new.txt"
    reviews.accepted(cli, new, write_file(new, "new\n"))
    emacs.holds(UNDO, "all edits are undone")
    emacs.becomes(text_of(far, there), "one\ntwo\n")
    project = far.project
    eventually(lambda: not (project / "new.txt").exists(), "it is deleted there")
    wait_until_saved(project / "a.txt", "one\ntwo\n")
    assert emacs.value("e2e-tramp") is None
    assert here.read_text() == "here\n"

    # Emacs knows that the buffer is that of the file, once its host has answered.
    emacs.holds(in_buffer(far, there, "(verify-visited-file-modtime)"))
    far.visit(emacs, there)
    emacs.keys("M->", "x", "C-x", "C-s")
    # The user saves without a question.
    wait_until_saved(project / "a.txt", "one\ntwo\nx\n")

    emacs.command("gemini-companion-send")
    eventually(
        lambda: f"@{there}(line3)" in "".join(cli.screen().split()),
        "the prompt names the file there",
    )
    far.file(".geminiignore", "a.txt\n")
    is_hidden = "(gemini-companion-privacy-hidden-p (current-buffer))"
    emacs.holds(in_buffer(far, there, is_hidden))
    far.file(".geminiignore", "")
    emacs.holds(in_buffer(far, there, f"(not {is_hidden})"))
    far.file(".dir-locals-2.el", "((nil . ((gemini-companion-share . nil))))")
    emacs.holds(in_buffer(far, there, is_hidden))


def test_one_cli_there_is_undone_rejected_answered_and_disconnected(
    world: World, far: Host
) -> None:
    files = [far.file(name, "one\n") for name in ("a.txt", "b.txt", "c.txt")]
    (world.scratch.root / "far/project/real").mkdir()
    (far.project / "real/b.txt").write_text("1\n2\n3\n")
    (far.project / "link").symlink_to("real")
    linked = world.project / "link/b.txt"
    emacs, _ = start(world, far, linked, *files)
    cli = run(world, emacs, far, QUESTION)
    undo_ends_while_its_host_does_not_answer(world, far, emacs, cli, files[:2])
    is_rejected_and_answered_in_its_terminal(world, far, emacs, cli, linked)
    what_is_written_during_a_prompt_is_undone_after_connecting_again(
        world, far, emacs, cli, files[2]
    )


def select(emacs: Emacs, cli: Gemini) -> None:
    """Select the terminal of ``cli``, where its keys go."""
    emacs.eval(f"(progn (pop-to-buffer {lisp(cli.terminal.name)}) nil)")


def undo_ends_while_its_host_does_not_answer(
    world: World, far: Host, emacs: Emacs, cli: Gemini, files: list[Path]
) -> None:
    reviews = Reviews(emacs)
    for file in files:
        reviews.accepted(cli, file, write_file(file, "two\n"))
        emacs.becomes(text_of(far, file), "two\n")
    emacs.eval("(setq gemini-companion-remote-write-seconds 1)")

    def texts() -> list[str]:
        return [(far.project / file.name).read_text() for file in files]

    (outpost,) = outposts(world.scratch)
    outpost.suspend()
    emacs.command("gemini-companion-turn-page")
    emacs.keys("1", "C-u", "u")
    emacs.keys("y")
    emacs.says("no answer from docker:far in 1 s")
    emacs.says("No answer from docker:far yet")
    assert texts() == ["two\n", "two\n"]
    outpost.resume()
    # What was sent is written, and is one decision.
    emacs.says("was written after all")
    eventually(lambda: sorted(texts()) == ["one\n", "two\n"], "one is written")
    emacs.command("gemini-companion-list")
    emacs.keys("C-_")
    eventually(lambda: texts() == ["two\n", "two\n"], "it is taken back")
    emacs.eval("(custom-reevaluate-setting 'gemini-companion-remote-write-seconds)")


def is_rejected_and_answered_in_its_terminal(
    world: World, far: Host, emacs: Emacs, cli: Gemini, linked: Path
) -> None:
    """Reject a new file; let the user edit ``linked``, which is answered there."""
    select(emacs, cli)
    reviews = Reviews(emacs)
    new = world.project / "new.txt"
    reviews.proposed(cli, new, write_file(new, "new\n"))
    reviews.reject()
    cli.is_free()
    assert not (far.project / "new.txt").exists()

    # By its true name; the buffer has another one.
    real = world.project / "real/b.txt"
    insert = '(goto-char (point-min)) (insert "mine\\n")'
    emacs.eval(in_buffer(far, linked, insert))
    reviews.proposed(cli, real, write_file(real, "1\n2\nthree\n"), say("done"))
    reviews.edit("three", "drei")
    # Ediff takes the whole frame.
    select(emacs, cli)
    cli.answer("Allow once")
    cli.wait_for("done")
    assert (far.project / "real/b.txt").read_text() == "1\n2\ndrei\n"
    emacs.says("has unsaved changes in Emacs")
    emacs.eval(in_buffer(far, linked, "(gemini-companion-merge) nil"))
    emacs.becomes(text_of(far, linked), "mine\n1\n2\ndrei\n")


def what_is_written_during_a_prompt_is_undone_after_connecting_again(
    world: World, far: Host, emacs: Emacs, cli: Gemini, there: Path
) -> None:
    select(emacs, cli)
    reviews = Reviews(emacs)
    reviews.proposed(cli, there, write_file(there, "two\n"), say("done"))
    # While the user types the name of the command, no buffer is reverted.
    emacs.keys("M-x", "gemini-companion-disconnect")
    emacs.eval(f"(progn (gemini-companion-edit-accept {OLDEST}) nil)")
    wait_until_saved(far.project / "c.txt", "two\n")
    emacs.becomes(f"(gemini-companion-edit-file-state {LAST})", "written")
    emacs.keys("Enter")
    emacs.says("Disconnected from docker:far")
    eventually(lambda: not outposts(world.scratch), "no outpost")

    emacs.command("gemini-companion-connect")
    emacs.says("Connected to docker:far; run ")
    emacs.becomes(text_of(far, there), "two\n")
    emacs.holds(UNDO_LAST, "the edit is undone")
    wait_until_saved(far.project / "c.txt", "one\n")
    emacs.becomes(text_of(far, there), "one\n")
    emacs.becomes(f"(gemini-companion-changes-status {LAST})", "undone")


@needs_qwen
def test_two_hosts_and_this_one_are_apart_and_nothing_is_left_there(
    world: World, host_of: HostOf
) -> None:
    hosts = [host_of("near"), host_of("far")]
    hosts[1].project.joinpath("a.txt").symlink_to("b.txt")
    files = [host.file("a.txt", f"{host.name}\n") for host in hosts]
    local = world.file("a.txt", "here\n")
    emacs, reviews = start(world, hosts[0], files[0])
    clis = []
    for host, file in zip(hosts, files, strict=True):
        host.visit(emacs, file)
        host.connect(emacs)
        clis.append(by_hand(world, host, is_qwen=host.name == "far"))
        clis[-1].wait_until_connected()
    emacs.eval(f"(progn (find-file {lisp(local)}) nil)")
    clis.append(world.gemini())
    stays_connected(emacs, clis[1], "gemini", "gemini")

    for index, cli in enumerate(clis):
        # Qwen Code must have read the file.
        first = [read_file(local)] if isinstance(cli, Qwen) else []
        cli.model.script(*first, write_file(local, f"{index}\n"), say("done"))
        cli.ask()
        reviews.wait_until(index + 1)
    opened = "(gemini-companion-edits-open)"
    names = emacs.value(f"(mapcar #'gemini-companion-edit-name {opened})")
    link = "docker:far:b.txt (by the symbolic link a.txt)"
    assert names == ["docker:near:a.txt", link, "a.txt"]
    emacs.eval(f"(mapc #'gemini-companion-edit-accept {opened})")
    for cli in clis:
        cli.wait_for("done")
    emacs.becomes(text_of(hosts[1], files[1]), "1\n")
    emacs.holds(in_buffer(hosts[1], files[1], "(verify-visited-file-modtime)"))
    texts = [host.project.joinpath("a.txt").read_text() for host in hosts]
    assert [*texts, local.read_text()] == ["0\n", "1\n", "2\n"]

    assert all(host.discovery_files() for host in hosts)
    assert len(outposts(world.scratch)) == 2
    os.kill(emacs.pid, signal.SIGKILL)
    eventually(lambda: not any(h.discovery_files() for h in hosts), "none is found")
    eventually(lambda: not outposts(world.scratch), "no outposts")
    copies = f"gemini-companion-*-{emacs.pid}-*"
    eventually(lambda: not list(world.scratch.tmp.glob(copies)), "no copies are left")


@contextmanager
def held(scratch: Scratch, host: Host) -> Iterator[None]:
    """Stop the CLI until another outpost than now listens in ``host``.

    It opens the event stream again only for 2.5 seconds.
    """
    (cli,) = scratch.processes("-m gemini-2.5-flash")
    before = host.discovery_files("gemini")
    cli.suspend()
    yield
    eventually(lambda: host.discovery_files("gemini") not in ([], before), "an outpost")
    cli.resume()


def is_connected_again(emacs: Emacs, cli: Gemini) -> bool:
    """Return whether ``cli``, whose outpost was killed, has a session of another one.

    If its first attempt to connect again was too early, it opens no more reviews, and
    must be given the command.
    """
    if CONNECTED not in cli.ide_status():
        cli.enable()
    return bool(emacs.value("(and (gemini-companion-sessions) t)"))


def test_reviews_outlive_a_restart_of_the_server_and_a_killed_outpost(
    world: World, far: Host
) -> None:
    there = far.file("a.txt", "one\n")
    emacs, reviews = start(world, far, there)
    # One file is in a directory that is the same here.
    (far.project / "same").mkdir()
    same = far.file("same/b.txt", "one\n")
    pair = f"({lisp(same.parent)} . {lisp(far.project / 'same')})"
    hosts = f"'(({lisp(far.prefix)} {pair}))"
    emacs.eval(f"(setq gemini-companion-remote-directories {hosts})")
    cli = run(world, emacs, far)
    reviews.proposed(cli, same, write_file(same, "two\n"), say("first done"))
    assert reviews.paths() == [str(far.project / "same/b.txt")]
    with held(world.scratch, far):
        restart(emacs, world.scratch)
        emacs.says("server was restarted")
        reviews.accept()
    cli.wait_for("first done")
    assert (far.project / "same/b.txt").read_text() == "two\n"

    with held(world.scratch, far):
        outposts(world.scratch)[0].kill()
    emacs.says("Reconnected to docker:far; if a CLI there does not reconnect")
    eventually(lambda: is_connected_again(emacs, cli), "the CLI is connected again")
    reviews.accepted(cli, there, write_file(there, "three\n"))
    assert (far.project / "a.txt").read_text() == "three\n"

    reviews.proposed(cli, there, write_file(there, "four\n"))
    emacs.command("gemini-companion-disconnect")
    emacs.says("disconnected; review closed, docker:far:a.txt not written")
    cli.wait_for("Request cancelled")
    eventually(lambda: not far.discovery_files(), "no discovery file there")
    eventually(lambda: not outposts(world.scratch), "no outpost")

    # What was edited there can be reverted after connecting again.
    emacs.command("gemini-companion-connect")
    emacs.says("Connected to docker:far; run ")
    emacs.holds(UNDO, "all edits are undone")
    wait_until_saved(far.project / "a.txt", "one\n")
