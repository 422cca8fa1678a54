"""A noun is whole: what one layer declares, the others have, or a line here says why not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from relay import domain
from relay.http.routing import TABLE
from svc.cmd.frame.table import COMMANDS, GROUPS
from tests.endpoints import endpoints

ROOT = Path(__file__).parents[1]

# Endpoints that no command calls. Pages and other programs call them.
UNCALLED = {
    "api_key.VALIDATE": "programs that accept keys",
    "billing.CHECKOUT": "pages, to come",
    "billing.INVOICES": "pages, to come",
    "billing.PORTAL": "pages, to come",
    "auth.APPROVE": "a browser",
    "auth.CHANGE_HANDLE": "other programs",
    "auth.CREATE_TOKEN": "a browser",
    "auth.GUEST_LOGIN": "other programs",
    "auth.LOGOUT_BY_REFRESH": "a browser",
    "auth.REFRESH": "a browser",
    "device.LIST": "other programs; ours lists the same keys as device keys",
    "device.REVOKE": "other programs; ours revokes the same keys as device keys",
    "history.ARCHIVE": "other programs",
    "listing.SOCIAL": "pages, to come",
    "live.PROOF_CONTEXT": "other programs; ours makes these bytes itself",
    "merge.MERGE": "other programs",
    "merge.PREVIEW": "other programs",
    "node.CONFIG": "other programs",
    "node.READY": "monitors",
    "node.READYZ": "monitors",
    "ref.UPDATE": "importers",
    "seal.PREPARE_SEALS": "importers",
}
# Commands that no transcript shows: what they print depends on the machine, or the ones beside them tell it.
UNSHOWN = {
    "auth device ssh",
    "auth token revoke",
    "completions",
    "app check",
    "app install",
    "app launch",
    "app list",
    "app logs",
    "app manifest",
    "app open",
    "app restart",
    "app status",
    "app stop",
    "app uninstall",
    "app update",
    "llm doctor",
    "llm logs",
    "llm ps",
    "llm run",
    "llm serve",
    "llm start",
    "llm status",
    "llm stop",
    "repo executable",
    "repo git-ignored",
    "repo status",
    "tui",
    "version",
}
# Routes whose tests stand in files of other names.
TESTED = {
    "auth": "tests/relay/auth/test_session.py",
    "cli_grant": "tests/relay/auth/test_device_grant.py",
    "handle": "tests/relay/auth/test_local_account.py",
    "payload": "tests/relay/domain/storage/test_chunked.py",
    "settings": "tests/relay/auth/test_browser.py",
    "sign_in": "tests/relay/auth/test_browser.py",
    "sync": "tests/relay/http/test_live_http.py",
}


def used_by_the_client() -> set[str]:
    """Endpoints named in `svc` and `tui`, as `ref.CREATE`."""
    found: set[str] = set()
    for path in [*(ROOT / "svc").rglob("*.py"), *(ROOT / "tui").rglob("*.py")]:
        tree = ast.parse(path.read_text("utf-8"))
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            origin = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if isinstance(node, ast.ImportFrom) and origin == "localstore.core.model":
                modules |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and origin.startswith("localstore.core.model."):
                found |= {f"{origin.rpartition('.')[2]}.{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found |= {f"{modules[name]}.{node.attr}" for name in [node.value.id] if name in modules}
    return found


def test_every_endpoint_is_called_by_the_client_or_for_others() -> None:
    assert sorted(set(endpoints()) - used_by_the_client()) == sorted(UNCALLED)


def test_every_command_that_is_written_is_in_the_table() -> None:
    """A function that `answers` is a command; its folder's COMMANDS name it."""
    listed = {f"svc.cmd.{entry.target.replace(':', '.')}" for entry in COMMANDS.values()}
    written = set()
    for path in (ROOT / "svc" / "cmd").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "answers"
                for one in node.decorator_list
            ):
                written.add(f"{module}.{node.name}")
    assert sorted(written - listed) == []


def test_every_group_of_a_command_has_a_summary() -> None:
    """Completion, help and the reference list groups with the text in GROUPS of the folder."""
    groups = {" ".join(name.split()[:length]) for name in COMMANDS for length in range(1, len(name.split()))}
    assert sorted(group for group in groups if group not in {*GROUPS, *COMMANDS}) == []


def test_every_command_is_shown_in_a_transcript() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "tests/transcripts").glob("*.md"))
    assert sorted(name for name in COMMANDS if f"svc {name}" not in text) == sorted(UNSHOWN)


def served() -> list[str]:
    """The nouns that the route table serves, but for the pages of repositories."""
    domain.load()
    names = {row.name.partition(".")[0] for row in TABLE if row.operation.name != "page.repository"}
    return sorted(names - {"git", "terminal"})


@pytest.mark.parametrize("noun", served())
def test_every_noun_has_tests_of_its_routes(noun: str) -> None:
    if noun in TESTED:
        assert (ROOT / TESTED[noun]).exists()
        return
    names = [path.stem for path in (ROOT / "tests").rglob("test_*.py")]
    assert [name for name in names if re.search(rf"_{noun}(s|_|$)", name)], (
        f"write tests of the routes of {noun}"
    )
