# SPDX-License-Identifier: GPL-3.0-or-later
"""A second host for tests: other files under the same names, by a mount namespace.

The project, HOME and TMPDIR there are other directories than here.  The network is
the same, so the port of the server is taken there, and a CLI reaches the model.
The real ssh and sshd lead there, or a program with the command line of docker.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from . import qwen
from .emacs import Emacs, lisp
from .gemini import SETTINGS, write_program, write_settings
from .scratch import MARK, Scratch
from .tools import ROOT

QUESTION = "share your open files there with them? (y or n)"
UNSHARE = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-U", "-r", "-m")
SSHD = ROOT / ".deps" / "sshd"

MAKE = """
mount --make-rprivate / && mount --bind "$1" "$2" || exit
if [ -e "$3/passwd" ]; then
    mount --bind "$3/passwd" /etc/passwd && mount -t tmpfs none /run &&
        mkdir /run/sshd || exit
fi
echo up && exec sleep infinity
"""

RUN = """#!/bin/sh
# host NAME COMMAND...: run COMMAND on the host NAME.
name=$1; shift
exec nsenter -t "$(cat {root}/$name/pid)" -m {user} \\
    env -i HOME={root}/$name/home TMPDIR={root}/$name/tmp PATH="$PATH" \\
    NODE_COMPILE_CACHE="$NODE_COMPILE_CACHE" \\
    LANG=C.UTF-8 SHELL=/bin/sh TERM="$TERM" {mark}={root} \\
    sh -c 'cd {project} && exec "$@"' sh "$@"
"""

DOCKER = """#!/bin/sh
# docker exec [-i] [-t] [-u USER] CONTAINER COMMAND...
[ "$1" = exec ] || exit 1
shift
while getopts itu: option; do
    case $option in
        i) input=yes ;;
        t) [ -t 0 ] || {{ echo "the input device is not a TTY" >&2; exit 1; }} ;;
    esac
done
shift $((OPTIND - 1))
[ "$input" ] || exec {program} "$@" </dev/null
exec {program} "$@"
"""

SSH_CONFIG = """
Host {name}
    User root
    IdentityFile {root}/{name}/key
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    ProxyCommand {relay}{program} {name} env LD_LIBRARY_PATH={library} {sshd} -i -f \
{root}/{name}/sshd_config
"""

SSHD_CONFIG = """
HostKey {root}/{name}/key
AuthorizedKeysFile {root}/{name}/key.pub
StrictModes no
PasswordAuthentication no
LogLevel QUIET
SetEnv TMPDIR={root}/{name}/tmp PATH={path} {mark}={root} {cache}
"""

# relay SECONDS COMMAND...: run COMMAND, and delay what it reads and writes.
RELAY = """
import os, subprocess, sys, threading, time
def carry(source, target):
    while data := os.read(source, 65536):
        time.sleep(float(sys.argv[1]))
        while data:
            data = data[os.write(target, data):]
    os.close(target)
command = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
arguments = 0, command.stdin.fileno()
threading.Thread(target=carry, args=arguments, daemon=True).start()
carry(command.stdout.fileno(), 1)
"""

PASSWD = """\
root:x:0:0::{home}:/bin/sh
sshd:x:74:65534::/run/sshd:/bin/false
nobody:x:65534:65534::/:/bin/false
"""

INIT = """
(require 'tramp)
(setq tramp-verbose 1
      tramp-allow-unsafe-temporary-files t)
(setenv "PATH" (concat {bin} ":" (getenv "PATH")))
(push {bin} exec-path)
;; Emacs 28 has no such method.
(unless (assoc "docker" tramp-methods)
  (add-to-list 'tramp-methods
               '("docker" (tramp-login-program "docker")
                 (tramp-login-args (("exec") ("-it") ("%h") ("sh")))
                 (tramp-remote-shell "/bin/sh") (tramp-remote-shell-args ("-c")))))
"""


def why_not(method: str = "docker") -> str:
    """Return why there can be no host for ``method``, or an empty string."""
    if sys.platform != "linux":
        return "mount namespaces are of Linux"
    if not all(map(shutil.which, ("unshare", "nsenter", "mount", "node"))):
        return "unshare, nsenter, mount or node is not installed"
    command = [*UNSHARE, "mount", "--make-rprivate", "/"]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        return "mount namespaces are not permitted"
    if method == "ssh":
        if os.geteuid() != 0:
            return "sshd serves hosts for root only"
        if not (SSHD / "usr/sbin/sshd").exists() or not shutil.which("ssh-keygen"):
            return "ssh is not installed, or sshd not unpacked"
    return ""


class Host:
    """A host called ``name``, which TRAMP reaches by ``method``.

    With "ssh", each way of the connection takes ``delay`` seconds.
    """

    def __init__(
        self, scratch: Scratch, name: str, method: str = "docker", delay: float = 0
    ) -> None:
        self.scratch = scratch
        self.name = name
        self.title = f"{method}:{name}"
        self.prefix = f"/{self.title}:"
        self.root = scratch.root / name
        directories = [self.root / name for name in ("project", "home", "tmp")]
        for directory in directories:
            directory.mkdir(parents=True)
        self.project, self.home, self.tmp = directories
        (self.project / ".git").mkdir()
        self.program = scratch.root / "host"
        user = "" if os.geteuid() == 0 else "-U --preserve-credentials"
        _write_program(
            self.program,
            RUN.format(
                root=scratch.root, project=scratch.project, user=user, mark=MARK
            ),
        )
        self.bin = scratch.root / "bin"
        self.bin.mkdir(exist_ok=True)
        _write_program(self.bin / "docker", DOCKER.format(program=self.program))
        if method == "ssh":
            self._configure_ssh(delay)
        command = [*UNSHARE, "sh", "-c", MAKE, "sh"]
        directories = [self.project, scratch.project, self.root]
        self._holder = subprocess.Popen(
            [*command, *directories], stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"up\n"
        (self.root / "pid").write_text(str(self._holder.pid))
        for client, settings in (("gemini", SETTINGS), ("qwen", qwen.SETTINGS)):
            write_settings(self.home / f".{client}", settings)

    def _configure_ssh(self, delay: float) -> None:
        """Make keys, and the program ssh that logs in here."""
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.root / "key"],
            check=True,
        )
        relay = self.root / "relay"
        relay.write_text(RELAY)
        values = {
            "root": self.scratch.root,
            "name": self.name,
            "program": self.program,
            "relay": f"{sys.executable} {relay} {delay} ",
            "library": next(SSHD.glob("usr/lib/*-linux-gnu*")),
            "sshd": SSHD / "usr/sbin/sshd",
            "path": os.environ["PATH"],
            "cache": f"NODE_COMPILE_CACHE={os.environ.get('NODE_COMPILE_CACHE', '')}",
            "mark": MARK,
            "home": self.home,
        }
        for name, text in (
            ("ssh_config", SSH_CONFIG),
            ("sshd_config", SSHD_CONFIG),
            ("passwd", PASSWD),
        ):
            (self.root / name).write_text(text.format(**values))
        ssh = f"{shutil.which('ssh')} -F {self.root}/ssh_config"
        write_program(self.bin / "ssh", {}, ssh)

    @property
    def init(self) -> str:
        """The Lisp by which Emacs knows this host and all others."""
        return INIT.format(bin=lisp(self.bin))

    def file(self, name: str, content: str = "") -> Path:
        """Write the file ``name`` in the project there, and return its name there."""
        (self.project / name).write_text(content)
        return self.scratch.project / name

    def remote(self, path: Path) -> str:
        """Return the name in Emacs of the file ``path`` there."""
        return f"{self.prefix}{path}"

    def visit(self, emacs: Emacs, *files: Path) -> None:
        for file in files:
            emacs.eval(f"(progn (find-file {lisp(self.remote(file))}) nil)")

    def connect(self, emacs: Emacs) -> None:
        """Connect this host, which is the one of the selected buffer of ``emacs``."""
        emacs.command("gemini-companion-connect", QUESTION)
        emacs.says(f"Connected to {self.title}; run ")

    def discovery_files(self, client: str = "") -> list[Path]:
        files = [*self.tmp.glob("gemini/ide/*"), *self.home.glob(".qwen/ide/*")]
        return [file for file in files if client in file.name]

    def close(self) -> None:
        self._holder.send_signal(signal.SIGKILL)
        self._holder.communicate()


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
