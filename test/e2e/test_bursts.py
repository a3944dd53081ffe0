# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys as people type them: in a macro, or ahead of a busy Emacs.

There is no redisplay between two commands then.  What was not displayed is not
answered.  Ediff does not end Emacs, whose garbage is collected meanwhile.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.emacs import DRAWN, SIZE, Emacs
from harness.random_keys import COLLECT
from harness.wait import wait_until_saved
from harness.world import World

from fake_cli import FakeCli

pytestmark = pytest.mark.shared("bursts")

OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = OLD.replace("line 5\n", "line five\n").replace("line 30\n", "line thirty\n")

SETUP = """
(setq gemini-companion-review-view '{view})
(global-set-key (kbd "<f5>") #'gemini-companion-review)
(global-set-key (kbd "<f6>") #'gemini-companion-list)
(global-set-key (kbd "<f7>") #'gemini-companion-next-change)
(global-set-key (kbd "<f8>") #'gemini-companion-undo-change)
;; Strings that are made for each redisplay, as many people have them.
(setq-default mode-line-format
              '(:eval (list (propertize (make-string 9 ?z) 'face (list 'bold))
                            (propertize "%b" 'face (list 'italic)))))
{collect}
;; Where the keys alone change windows, they may end any Emacs: C-x 1 q C-x 2 in a
;; macro do so without the mode as well.
(when (eq 'diff '{view}) (remove-hook 'post-command-hook #'e2e-collect))
"""


# In the overview, point is on a proposal that has been displayed.
ROW = """
(with-current-buffer (window-buffer)
  (and (derived-mode-p 'gemini-companion-overview-mode)
       (let ((row (gemini-companion-overview-page-row)))
         (and (eq 'proposal (gemini-companion-overview-row-kind row))
              (gemini-companion-overview-page-displayed-p row)))))
"""


class Scene:
    """An Emacs, and a CLI that proposes several edits at once."""

    def __init__(self, world: World, view: str, **options: object) -> None:
        self._world = world
        self.files = [world.file(f"{name}.txt", OLD) for name in "abcdef"]
        self.emacs: Emacs = world.emacs(
            world.file("mine.txt", "mine\n"),
            extra=SETUP.replace("{view}", view).replace("{collect}", COLLECT),
            **options,
        )
        # After an answer of the test before, and no key, a review begins by itself.
        self.emacs.keys("C-g")
        (path,) = world.scratch.discovery_files()
        facts = json.loads(path.read_text(encoding="utf-8"))
        self._cli = FakeCli(facts["port"], facts["authToken"])
        self._events = self._cli.connect()

    def propose(self, *files: Path) -> None:
        for file in files or self.files:
            self._cli.open_diff(str(file), NEW)

    def outcomes(self, count: int) -> list[str]:
        """Return the outcomes of the next ``count`` edits, and write those accepted."""
        outcomes = []
        while len(outcomes) < count:
            event = self._events.next()
            if event["method"].startswith("ide/diff"):
                params = event["params"]
                path = Path(params["filePath"])
                if event["method"] == "ide/diffAccepted":
                    path.write_text(params["content"])
                outcomes.append(f"{path.stem} {event['method'][len('ide/diff') :]}")
        return outcomes

    def review(self, key: str = "F5") -> None:
        """Show what waits by ``key``, and wait until it is displayed."""
        self.emacs.keys(key)
        self.emacs.holds(DRAWN if key == "F5" else ROW, "a proposal is displayed")

    def open(self, count: int) -> None:
        """Wait until ``count`` edits are open, and await the user for certain."""
        self.emacs.becomes("(length (gemini-companion-edits-open))", count)
        self.emacs.becomes("(length (gemini-companion-requests-certain))", count)

    def close(self) -> None:
        self._cli.close()


@pytest.fixture
def scene(world: World, request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(world, request.param)
    yield scene
    scene.close()


@pytest.mark.parametrize("scene", ["ediff"], indirect=True)
@pytest.mark.parametrize("size", [(80, 24), (100, 40), (200, 50)], ids=str)
def test_reviews_in_ediff_end_with_what_the_keys_say(
    scene: Scene, size: tuple[int, int]
) -> None:
    emacs, (first, second) = scene.emacs, scene.files[:2]
    emacs.resize(size)
    before = emacs.value("(e2e-layout)")
    scene.propose(first, second)
    scene.open(2)
    scene.review()
    emacs.wait_for(" 1/2 ")
    emacs.keys("n", "x", "C-c", "C-c")
    assert scene.outcomes(1) == ["a Accepted"]
    assert first.read_text() == OLD.replace("line 5\n", "line five\n")
    # The next review begins in the same windows.
    emacs.holds(DRAWN, "a proposal is displayed")
    emacs.keys("C-c", "C-k")
    assert scene.outcomes(1) == ["b Rejected"]
    assert second.read_text() == OLD
    emacs.becomes("(e2e-layout)", before)
    emacs.resize(SIZE)


@pytest.mark.differs("the display of windows in Emacs")
@pytest.mark.parametrize("scene", ["ediff"], indirect=True)
@pytest.mark.parametrize("macro", [False, True], ids=["ahead", "macro"])
def test_reviews_are_answered_in_a_burst(scene: Scene, macro: bool) -> None:
    scene.propose()
    scene.open(6)
    scene.review()
    scene.emacs.burst("C-c", "C-k", "F6", "C-x", "1", macro=macro)
    assert scene.outcomes(1) == ["a Rejected"]

    # Nobody has seen the review that these keys would accept.
    scene.review("F6")
    scene.emacs.burst("F5", "C-c", "C-c", "C-x", "1", macro=macro)
    scene.open(5)

    scene.review()
    scene.emacs.burst("C-x", "o", "C-x", "2", "F5", "C-c", "C-e", "X", "C-c", "C-e",
                      "C-x", "1", macro=macro)  # fmt: skip
    scene.review()
    scene.emacs.burst("C-c", "C-c", "F6", "C-x", "2", "q", "C-x", "1", macro=macro)
    assert scene.outcomes(1) == ["b Accepted"]
    assert "X" in scene.files[1].read_text()
    scene.open(4)


@pytest.mark.parametrize("scene", ["diff", "ediff"], indirect=True)
def test_list_is_used_in_a_burst(scene: Scene) -> None:
    scene.propose()
    scene.open(6)
    scene.review("F6")
    scene.emacs.burst("r", "C-x", "1", "F5", "F6", "q", "C-x", "2", "F6", "C-x", "1",
                      "Enter", "C-x", "3", macro=True)  # fmt: skip
    assert scene.outcomes(1) == ["a Rejected"]
    scene.review()
    scene.emacs.burst("C-c", "C-c", "C-x", "3", macro=True)
    assert scene.outcomes(1) == ["b Accepted"]


@pytest.mark.parametrize("scene", ["diff"], indirect=True)
def test_changes_are_walked_through_in_a_burst(scene: Scene) -> None:
    first, second = scene.files[:2]
    scene.propose(first, second)
    scene.emacs.becomes("(length (gemini-companion-edits-open))", 2)
    # As auto-accept does, which leaves out files outside of the CLI's project.
    scene.emacs.eval("(mapc (lambda (edit) (gemini-companion-proposal-offer edit nil)) "
                     "(gemini-companion-edits-open))")  # fmt: skip
    assert scene.outcomes(2) == ["a Accepted", "b Accepted"]
    scene.emacs.becomes("(gemini-companion-changes-left)", 4)
    scene.emacs.becomes("(e2e-windows)", "mine.txt")
    # Undoing goes on to line 30 of the same file, which is kept; neither is saved.
    # C-x 1 does not end the walk.
    scene.emacs.burst("F7", "u", "C-x", "1", "k", "C-x", "2", "F6", "C-x", "1",
                      "F7", "u", "C-x", "3")  # fmt: skip
    scene.emacs.becomes("(gemini-companion-changes-left)", 1)
    scene.emacs.burst("C-x", "s", "!", "C-x", "1")
    wait_until_saved(first, NEW.replace("line five", "line 5"))
    wait_until_saved(second, NEW.replace("line five", "line 5"))


@pytest.mark.parametrize("scene", ["ediff"], indirect=True)
def test_terminals_and_frames_come_and_go_in_a_burst(
    world: World, scene: Scene
) -> None:
    emacs = scene.emacs
    client = [world.tools.emacsclient, "-t", "-s", "emacs", str(scene.files[0])]
    second = world.tmux.start("second", client, world.project, {}, (100, 30))
    second.wait_for("a.txt")
    scene.propose()
    scene.open(6)
    scene.review()
    # The review is hidden by another frame of its terminal while it is closed.
    emacs.burst("C-x", "5", "2", "C-c", "C-k")
    assert scene.outcomes(1) == ["a Rejected"]
    emacs.burst("C-x", "1", "F5", "C-x", "5", "0", "C-x", "2", "C-x", "1")

    with emacs.busy():
        # Which of the two terminals Emacs reads first is not defined, so that these
        # keys show the review, but do not answer it.
        second.text("\x1bxgemini-companion-review\r")
        second.resize((90, 40))
        emacs.terminal.resize((120, 35))
        emacs.terminal.keys("F5", "C-x", "1", "F6", "C-x", "2")
        second.text("\x181\x182")
        emacs.terminal.keys("F5", "C-x", "1")
    scene.review()
    emacs.burst("C-c", "C-k", "C-x", "1")
    assert scene.outcomes(1) == ["b Rejected"]

    second.text("\x1bxgemini-companion-review\r")
    world.tmux.call("kill-session", "-t", "=second")
    emacs.burst("F5", "C-x", "1", "F6", "C-x", "2")
    scene.review()
    emacs.burst("C-c", "C-c", "C-x", "1")
    assert scene.outcomes(1) == ["c Accepted"]
    emacs.holds("(= 1 (length (frame-list)))")
    emacs.terminal.resize(SIZE)
    emacs.holds(f"(= {SIZE[0]} (frame-width))", "the frame has the size of before")
