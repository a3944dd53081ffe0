# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Emacs on a screen, with the mode on."""

import base64
import json
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from .gemini import HEADER, Gemini
from .model import Part, say
from .scratch import Scratch
from .terminal import Screen, Terminal, Tmux
from .tools import Tools
from .wait import BOUND, eventually

# The sides of Ediff have room beside each other.
SIZE = (170, 50)

# Like -Q, but EARLY_INIT is read.
BARE = ("--no-site-file", "--no-site-lisp", "--no-splash")

# Two fifths of the work of an Emacs that shows a CLI would be garbage collection.
EARLY_INIT = """
(setq gc-cons-threshold (* 64 1024 1024)
      package-enable-at-startup nil
      native-comp-enable-subr-trampolines nil
      native-comp-jit-compilation nil
      native-comp-deferred-compilation nil)
"""

INIT = """
(setq inhibit-startup-screen t
      ring-bell-function #'ignore
      ;; It takes half a second after each M-x.
      extended-command-suggest-shorter nil
      load-prefer-newer t
      load-path (append (directory-files {elpa} t "-[0-9.]+\\\\'") load-path))
(defvar e2e-up nil "Non-nil once Emacs is set up.")
(defvar e2e-problem nil "Error during the set-up, a string, or nil.")
(defvar e2e-ready nil "Non-nil once the server was ready.")
(defun e2e-json (value)
  "Return VALUE as JSON that survives any terminal."
  (require 'json)
  (base64-encode-string (encode-coding-string (json-encode value) 'utf-8) t))
(defun e2e-answer (process text)
  "Evaluate the code that PROCESS has sent, once TEXT completes it; answer it.
C-g does not quit in a filter, so it reaches what the test sends it to."
  (let ((code (concat (process-get process 'code) text)))
    (process-put process 'code code)
    (when (string-suffix-p "\n" code)
      (set-process-query-on-exit-flag process nil)
      (process-send-string
       process
       (e2e-json
        (condition-case problem
            (list t (prin1-to-string
                     (eval (car (read-from-string
                                 (decode-coding-string
                                  (base64-decode-string code) 'utf-8)))
                           t)))
          ((error quit) (list nil (error-message-string problem))))))
      (delete-process process))))
(make-network-process :name "e2e" :server t :noquery t :family 'local
                      :service {socket} :filter #'e2e-answer)
(defun e2e-windows ()
  "Return the names of the buffers in the windows, from the upper left one."
  (mapconcat (lambda (window) (buffer-name (window-buffer window)))
             (window-list nil 'no-minibuffer (frame-first-window)) " "))
(defun e2e-layout ()
  "Return the selected buffer, and all that windows show and where they are.
Clear the echo area first: a message of two lines makes the windows smaller."
  (message nil)
  (redisplay)
  (list (buffer-name (window-buffer))
        (mapcar (lambda (window)
                  (list (buffer-name (window-buffer window))
                        (window-point window) (window-start window)
                        (window-edges window)))
                (window-list nil 'no-minibuffer (frame-first-window)))))
(defun e2e-said (text)
  "Return whether a message since the last reset had TEXT."
  (with-current-buffer "*Messages*" (string-search text (buffer-string))))
(defun e2e-undo-edits (edits)
  "Undo EDITS as a whole, with a yes to both questions."
  (require 'gemini-companion-undo)
  (cl-letf (((symbol-function 'gemini-companion-choice-key) (lambda (&rest _) ?y))
            ((symbol-function 'yes-or-no-p) #'always))
    (gemini-companion-undo-edits edits)))
(defun e2e-be-busy (file)
  "Handle no key while FILE exists."
  (run-at-time 0 nil #'e2e-busy file)
  nil)
(defun e2e-busy (file)
  "Wait until FILE does not exist, and read no input meanwhile."
  (while (file-exists-p file)
    (call-process "sleep" nil nil nil "0.02")))
(defun e2e-hold (arguments)
  "Return ARGUMENTS without an incomplete character at the end of the output.
The term of Emacs 28 to 30 may lose what follows one."
  (pcase-let* ((`(,process ,output) arguments)
               (output (concat (process-get process 'e2e-held) output))
               (end (or (string-match
                         (concat "\\\\(?:[\\300-\\377]\\\\|[\\340-\\377][\\200-\\277]"
                                 "\\\\|[\\360-\\377][\\200-\\277]\\\\{{2\\\\}}\\\\)\\\\'")
                         output)
                        (length output))))
    (process-put process 'e2e-held (substring output end))
    (list process (substring output 0 end))))
(advice-add 'term-emulate-terminal :filter-args #'e2e-hold)
(require 'server)
(setq server-name {name})
(server-start)
(condition-case problem
    (progn
      (add-to-list 'load-path {root})
      (require 'gemini-companion)
      (setq gemini-companion-server-command
            '({python} "-m" "gemini_companion_epc"))
      (add-hook 'gemini-companion-ready-hook (lambda () (setq e2e-ready t)))
      {extra}
      (dolist (file (list {files})) (find-file file))
      {mode}
      (setq e2e-up t))
  (error (setq e2e-problem (error-message-string problem))))
"""

# The core alone has no invariants.
MODE = "(require 'gemini-companion-invariants nil t) (gemini-companion-mode 1)"

INVARIANTS = """
(and (featurep 'gemini-companion-invariants) (gemini-companion-invariants-check))
"""

EVENTS = """
(save-window-excursion
  (gemini-companion-events-buffer)
  (with-current-buffer "*gemini-companion events*" (buffer-string)))
"""

RESET = """
(let ((ignore-window-parameters t) (kill-buffer-query-functions nil))
  (mapc #'gemini-companion-edit-reject (gemini-companion-edits-open))
  (mapc #'gemini-companion-proposal-finish (gemini-companion-edits-ending))
  (when (featurep 'gemini-companion-comment) (gemini-companion-remove-comments t))
  ;; Otherwise a message about a file of this test follows in the next one, and its
  ;; changes are left there.
  (let ((parts '(undone saved walk marks changes revert watch))
        (saved (locate-user-emacs-file "gemini-companion/changes")))
    (mapc #'gemini-companion-part-stop parts)
    (when (file-directory-p saved) (delete-directory saved t))
    (mapc #'gemini-companion-part-start (reverse parts)))
  (set-window-dedicated-p nil nil)
  (delete-other-windows (frame-first-window))
  (dolist (buffer (buffer-list))
    (unless (or (not (buffer-live-p buffer))
                (get-buffer-process buffer)
                (string-prefix-p " " (buffer-name buffer))
                (member (buffer-name buffer) '("*scratch*" "*Messages*")))
      (with-current-buffer buffer (set-buffer-modified-p nil))
      (kill-buffer buffer)))
  (switch-to-buffer "*scratch*")
  (erase-buffer)
  (dolist (terminal '("*terminal*" "*gemini: project*"))
    (when (get-buffer terminal) (switch-to-buffer terminal)))
  (setq kill-ring nil
        python-mode-hook nil
        gemini-companion-edit--all nil)
  (message nil)
  (with-current-buffer "*Messages*"
    (let ((inhibit-read-only t)) (erase-buffer)))
  (dolist (symbol (apropos-internal "\\\\`gemini-companion-" #'custom-variable-p))
    (unless (memq symbol '(gemini-companion-mode gemini-companion-server-command))
      (set-default symbol (eval (car (get symbol 'standard-value)) t)))))
"""

# There is no idle time after a prompt of a timer, which ends no command.
WAITS = """
(and (not (input-pending-p))
     (or (current-idle-time) (not (backtrace-frame 0 'command-execute))))
"""

# Where the last keys went.
INPUT = """
(let ((prompt (active-minibuffer-window)))
  (list (buffer-name (window-buffer))
        (and prompt (with-current-buffer (window-buffer prompt) (buffer-string)))
        (key-description (recent-keys))))
"""

FAILURE_REPORT = """
(mapcar (lambda (buffer)
          (with-current-buffer buffer
            (save-restriction
              (widen)
              (cons (intern (buffer-name))
                    (buffer-substring-no-properties
                     (max (point-min) (- (point-max) 3000)) (point-max))))))
        (seq-filter (lambda (buffer)
                      (string-match-p "Messages\\\\|Warnings\\\\|gemini"
                                      (buffer-name buffer)))
                    (buffer-list)))
"""


# The oldest open diff, and its proposal.
OLDEST = "(car (gemini-companion-edits-open))"
PROPOSAL = f"(gemini-companion-edit-proposal-buffer {OLDEST})"
DRAWN = """(let ((edit (gemini-companion-edit-shown)))
               (or (null edit)
                   (gemini-companion-view-drawn (gemini-companion-edit-view edit))))"""
# The only CLI, its state and its turn.
SESSION = "(car (gemini-companion-sessions))"
STATE = f"(gemini-companion-session-state {SESSION})"
TURN = f"(gemini-companion-session-turn {SESSION})"


def _from_json(printed: str) -> Any:
    """Return the value of which ``e2e-json`` has returned ``printed``."""
    return json.loads(base64.b64decode(printed.strip('"')))


def lisp(text: object) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def configure(scratch: Scratch) -> None:
    """Disable native compilation."""
    directory = scratch.home / ".emacs.d"
    directory.mkdir(exist_ok=True)
    directory.joinpath("early-init.el").write_text(EARLY_INIT, encoding="utf-8")


class Emacs(Screen):
    """An Emacs in its own terminal, or with a frame on an X display."""

    def __init__(
        self,
        tools: Tools,
        scratch: Scratch,
        tmux: Tmux,
        files: Sequence[Path] = (),
        name: str = "emacs",
        mode: bool = True,
        extra: str = "",
        root: Path | None = None,
        size: tuple[int, int] = SIZE,
        display: str = "",
    ) -> None:
        self.name = name
        self._size = size
        root = root or tools.lisp
        self._socket = scratch.run / f"{name}.lisp"
        self._socket.unlink(missing_ok=True)
        init = scratch.root / f"{name}.el"
        init.write_text(
            INIT.format(
                elpa=lisp(tools.elpa),
                root=lisp(root),
                python=lisp(tools.python),
                name=lisp(name),
                socket=lisp(self._socket),
                extra=extra,
                files=" ".join(map(lisp, files)),
                mode=MODE if mode else "",
            ),
            encoding="utf-8",
        )
        configure(scratch)
        # The package may also be installed where the Python is.
        environment = {"PYTHONPATH": str(root / "python"), **scratch.variables}
        if display:
            environment["DISPLAY"] = display
            frame = ["--geometry", f"{size[0]}x{size[1]}"]
        else:
            frame = ["-nw"]
        self.terminal: Terminal = tmux.start(
            name,
            [tools.emacs, *BARE, *frame, "-l", str(init)],
            scratch.project,
            environment,
            size,
        )
        self._wait_until_up()
        self.pid = int(self.eval("(emacs-pid)"))
        if mode:
            self.wait_until_ready()

    def eval(self, code: str) -> str:
        is_well, printed = self._tried(code)
        assert is_well, f"{code}\n{printed}"
        return printed

    def _tried(self, code: str) -> tuple[bool, str]:
        """Return whether ``code`` signals no error, and its value or error, printed."""
        answer = self._ask(code)
        assert answer, f"{code}\nEmacs has left"
        is_well, printed = json.loads(base64.b64decode(answer))
        return bool(is_well), str(printed)

    def act(self, code: str) -> None:
        """Evaluate ``code`` in the selected window's buffer, and share the result."""
        self.eval(f"(with-current-buffer (window-buffer) {code} nil)")
        self.holds("(gemini-companion-idle-p)", "the server has the context")

    def value(self, code: str) -> Any:
        """Evaluate ``code`` and return its value, converted by JSON."""
        return _from_json(self.eval(f"(e2e-json {code})"))

    def holds(self, code: str, what: str = "") -> None:
        """Wait until ``code`` is true in Emacs."""
        self.becomes(f"(and {code} t)", True, what or code)

    def becomes(self, code: str, value: object, what: str = "") -> None:
        """Wait until the value of ``code``, converted by JSON, is ``value``.

        An error is not the end: what ``code`` asks about may not be there yet.
        """
        last: list[Any] = []

        def has_become() -> bool:
            is_well, printed = self._tried(f"(e2e-json {code})")
            last[:] = [_from_json(printed) if is_well else printed]
            return is_well and last == [value]

        try:
            eventually(has_become, what or f"{code} is {value!r}")
        except AssertionError as problem:
            seen = f"{problem}\nIt is {last}"
            with suppress(AssertionError, OSError):
                seen += f"\nSelected buffer, minibuffer, last keys: {self.value(INPUT)}"
            raise AssertionError(seen) from problem

    def says(self, text: str) -> None:
        """Wait for a message with ``text``, which another one may have replaced."""
        self.holds(f"(e2e-said {lisp(text)})", f"Emacs says {text!r}")

    def row_takes_answers(self) -> None:
        """Wait until the proposal at point in the overview is a second old."""
        displayed = "gemini-companion-overview-page-displayed-p"
        self.holds(
            f"""(with-current-buffer "*gemini*"
                  ({displayed} (gemini-companion-overview-page-row)))""",
            "the row was displayed for a second",
        )

    def keys(self, *keys: str) -> None:
        """Press ``keys``, spelled as tmux spells them, and wait for their effect.

        A C-g would drop those before it, and interrupt what they do rather than be
        read as a key.
        """
        for _, some in groupby(keys, "C-g".__eq__):
            self.terminal.keys(*some)
            self._wait_until_handled()

    def text(self, text: str) -> None:
        """Type ``text`` literally, and wait for its effect."""
        self.terminal.text(text)
        self._wait_until_handled()

    def command(self, name: str, *questions: str, key: str = "y") -> None:
        """Run the command ``name`` by M-x, and answer its ``questions`` by ``key``."""
        self.keys("M-x", name, "Enter")
        for question in questions:
            # A long question is broken at any character.
            self.wait_for_match(r"(?:\\?\n)?".join(map(re.escape, question)))
            self.keys(key)

    def burst(self, *keys: str, macro: bool = False) -> None:
        """Press ``keys`` while Emacs is busy, which reads all of them afterwards.

        So there is no redisplay between the commands.  With ``macro``, the keys are
        those of a keyboard macro, which is executed.  Wait for the effect.  There may
        be no C-g, which would drop the keys before it.
        """
        assert "C-g" not in keys
        if macro:
            self.eval(f"(setq last-kbd-macro {self.macro(keys)})")
            self.keys("C-x", "e")
        else:
            with self.busy():
                self.terminal.keys(*keys)
                self.terminal.written()
            self._wait_until_handled()

    @staticmethod
    def macro(keys: Sequence[str]) -> str:
        """Return Lisp for a keyboard macro of ``keys``, as tmux spells them."""
        names = {"Enter": "RET", "Tab": "TAB", "Space": "SPC", "Escape": "ESC"}
        names |= {f"F{number}": f"<f{number}>" for number in range(1, 13)}
        parts = [
            f"(kbd {lisp(names.get(key, key))})"
            if key in names or re.fullmatch("([CM]-)+.", key)
            else lisp(key)
            for key in keys
        ]
        return f"(vconcat {' '.join(parts)})"

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Let Emacs handle no keys meanwhile, as if it were busy."""
        busy = self._socket.with_suffix(".busy")
        busy.touch()
        self.eval(f"(e2e-be-busy {lisp(busy)})")
        try:
            yield
        finally:
            busy.unlink()

    def _wait_until_handled(self) -> None:
        self.terminal.written()
        self.holds(WAITS, "Emacs has handled all keys")

    def screen(self) -> str:
        return self.terminal.screen()

    def resize(self, size: tuple[int, int]) -> None:
        if size != self._size:
            self.terminal.resize(size)
            self.holds(f"(= {size[0]} (frame-width))", "the frame has its size")
            self._size = size

    def wait_until_ready(self) -> None:
        self.holds("e2e-ready", "the server is ready")

    def expects(self, client: str) -> None:
        """Let the server find ``client``, as if Emacs had started that."""
        if self.terminal.is_open():
            self.eval(
                "(and (bound-and-true-p gemini-companion-mode)"
                f" (gemini-companion-server-call 'cli-started {lisp(client)}))"
            )

    def turn_on(self) -> None:
        """Turn the mode, which is off, on."""
        self.eval("(gemini-companion-mode 1)")
        self.holds("(gemini-companion-server-ready-p)", "the server is ready")

    def reset(self) -> None:
        self.check()
        self.act(RESET)
        self.holds("(null (gemini-companion-edits-open))", "no review is left")

    def check(self) -> None:
        """Assert that what must always be so was so."""
        broken = self.eval(INVARIANTS)
        if broken != "nil":
            # It may be so for a moment only, once in many runs.
            raise AssertionError(f"{broken}\n{self.value(EVENTS)[-8000:]}")

    def quit(self) -> None:
        if self.terminal.is_open():
            self.check()
            self._ask("(kill-emacs)")
        self.wait_until_exited()

    def wait_until_exited(self) -> None:
        eventually(lambda: not self.terminal.is_open(), "Emacs is gone")

    def report(self) -> str:
        if not self.terminal.is_open():
            return f"{self.name} is not there"
        try:
            buffers = self.value(FAILURE_REPORT)
        except (AssertionError, OSError) as problem:
            return f"{self.name} does not answer: {problem}"
        return "\n".join(f"=== {name}\n{text}" for name, text in buffers.items())

    def _ask(self, code: str) -> bytes:
        """Evaluate ``code`` in Emacs; return the answer, or "" if Emacs exits."""
        answer = bytearray()
        with socket.socket(socket.AF_UNIX) as connection, suppress(ConnectionError):
            connection.settimeout(BOUND)
            connection.connect(str(self._socket))
            connection.sendall(base64.b64encode(code.encode()) + b"\n")
            while data := connection.recv(65536):
                answer += data
        return bytes(answer)

    def _wait_until_up(self) -> None:
        eventually(lambda: self._socket.exists() and self._ask("t"), "Emacs answers")
        self.holds("(or e2e-up e2e-problem)", "Emacs is up")
        problem = self.value("e2e-problem")
        assert problem is None, problem


class TerminalBuffer(Screen):
    """A program in a terminal buffer that fills the frame of Emacs."""

    def __init__(self, emacs: Emacs, buffer: str) -> None:
        self._emacs = emacs
        self.name = buffer

    def screen(self) -> str:
        """Return what the buffer holds since the CLI was started or cleared.

        It draws its header then; term keeps what was above.
        """
        # Not as JSON, which takes long for a long text.
        code = f"""(with-current-buffer {lisp(self.name)}
          (save-excursion
            (goto-char (point-max))
            (search-backward {lisp(HEADER)} nil 'move)
            (base64-encode-string
             (encode-coding-string (buffer-substring (point) (point-max)) 'utf-8)
             t)))"""
        return base64.b64decode(self._emacs.eval(code).strip('"')).decode()

    def keys(self, *keys: str) -> None:
        self._emacs.keys(*keys)

    def text(self, text: str) -> None:
        self._emacs.text(text)


class Reviews:
    """The diffs of one Emacs, through its documented functions."""

    def __init__(self, emacs: Emacs) -> None:
        self.emacs = emacs
        self._before: object = None

    def paths(self) -> list[str]:
        """Return the paths of the open diffs, oldest first."""
        return self._all("file")

    def states(self) -> list[str]:
        code = """(mapcar (lambda (edit)
                    (if (gemini-companion-edit-appeared edit)
                        'shown
                      (gemini-companion-edit-status edit)))
                  (gemini-companion-edits-open))"""
        return list(self.emacs.value(code) or [])

    def proposed(self, cli: Gemini, file: Path, *turns: Part) -> None:
        """Prompt ``cli`` for ``turns``, and wait for the review of ``file``."""
        self._before = self.emacs.value("(e2e-layout)")
        cli.model.script(*turns)
        cli.ask()
        self.shown(file.name)

    def accepted(self, cli: Gemini, file: Path, *turns: Part) -> None:
        """Let ``cli`` propose ``turns``, and accept the review of ``file``."""
        said = f"accepted after {len(cli.model.requests)}"
        self.proposed(cli, file, *turns, say(said))
        self.accept()
        cli.wait_for(said)

    def ended(self) -> None:
        """Wait until no diff is open, and the windows are as before the last."""
        self.wait_until(0)
        # The end of the turn may not be known; the overview stays until q then.
        self.emacs.eval('(and (get-buffer "*gemini*") (quit-windows-on "*gemini*"))')
        self.emacs.becomes("(e2e-layout)", self._before)

    def shown(self, name: str) -> None:
        shown = f"""
            (seq-find (lambda (diff)
                        (and (or (eq 'shown (gemini-companion-edit-status diff))
                                 (gemini-companion-edit-appeared diff))
                             (string-suffix-p
                              {lisp(name)} (gemini-companion-edit-file diff))))
                      (gemini-companion-edits-open))"""
        self.emacs.holds(shown, f"a review of {name} is shown")

    def wait_until(self, count: int) -> None:
        eventually(lambda: len(self.paths()) == count, f"{count} open diffs")

    def kept(self) -> str:
        """Return the last text in the kill ring: of the user, and not written."""
        return str(self.emacs.value("(car kill-ring)"))

    def proposal(self) -> str:
        return str(
            self.emacs.value(f"(with-current-buffer {PROPOSAL} (buffer-string))")
        )

    def edit(self, old: str, new: str) -> None:
        self.emacs.eval(
            f"(with-current-buffer {PROPOSAL}"
            f" (goto-char (point-min)) (search-forward {lisp(old)})"
            f" (replace-match {lisp(new)} t t))"
        )

    def accept(self) -> None:
        self._call("accept")

    def reject(self) -> None:
        self._call("reject")

    def select(self, *keys: str) -> None:
        """Select the displayed review by the command, and press ``keys``."""
        self.emacs.eval("(progn (call-interactively #'gemini-companion-review) nil)")
        # No key answers before that.
        self.emacs.holds(DRAWN, "the review is displayed")
        if keys:
            self.emacs.keys(*keys)

    def _all(self, slot: str) -> list[str]:
        code = f"(mapcar #'gemini-companion-edit-{slot} (gemini-companion-edits-open))"
        return list(self.emacs.value(code) or [])

    def _call(self, verb: str) -> None:
        # After a command, the next review would be selected.
        self.emacs.eval(
            f"(let (real-this-command) (gemini-companion-edit-{verb} {OLDEST}))"
        )
