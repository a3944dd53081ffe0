# SPDX-License-Identifier: GPL-3.0-or-later
import json

from harness import gemini, qwen
from harness.emacs import Emacs, lisp
from harness.gemini import Gemini
from harness.needs import needs_qwen
from harness.world import World


def trust(world: World, client: str, level: str) -> dict[str, object]:
    """Trust the project to a ``level`` in ``client``; return its settings of that."""
    trusted = world.home / f".{client}" / "trustedFolders.json"
    trusted.parent.mkdir(exist_ok=True)
    trusted.write_text(json.dumps({str(world.project): level}))
    module = qwen if client == "qwen" else gemini
    security = json.loads(json.dumps(module.SETTINGS["security"]))
    return {**security, "folderTrust": {"enabled": True}}


def changes_trust(emacs: Emacs, cli: Gemini, client: str) -> None:
    """Check that ``cli`` has the command that the status names."""
    command = emacs.value(f"(gemini-companion-client-trust-command {lisp(client)})")
    cli.type(str(command), lambda: "Modify Trust Level" in cli.screen())


@needs_qwen
def test_trust_is_never_overridden(world: World) -> None:
    security = trust(world, "qwen", "DO_NOT_TRUST")
    emacs = world.emacs(world.file("a.txt", "1\n"))
    changes_trust(emacs, world.qwen(security=security), "qwen")
