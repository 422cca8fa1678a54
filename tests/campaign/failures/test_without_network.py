"""Every command of the table with the server gone: its port refuses, or takes what is said and is silent.

What needs the server says so in one sentence and has done nothing; the rest works."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.cmd.frame.command import build, function_of
from svc.cmd.frame.queueing import is_queueable
from svc.cmd.frame.table import COMMANDS
from svc.http import client, silence
from tests.campaign.cable import Cable
from tests.campaign.conftest import Place
from tests.campaign.world import Node
from tests.svc.conftest import Svc
from tests.svc.conftest import svc as svc

WORDS = {
    "shell": "bash",
    "who": "public",
    "path": "src/a.txt",
    "paths": "src/a.txt",
    "role": "admin",
    "number": "1",
}
STAYS = ("tui", "invoke", "watch", "watch socket", "watcher start")  # which start something that stays
WORKS = frozenset(
    {
        "auth git-credential",
        "auth setup-git",
        "auth status",
        "completions",
        "conflicts",
        "diff",
        "grep",
        "logout",
        "queue list",
        "queue retry",
        "resolve",
        "status",
    }
    | {"repo executable", "repo git-ignored", "repo status", "restore", "version", "login"}
    | {path for path in COMMANDS if path.startswith(("llm ", "app ")) and path != "app install"}  # no server
    | {"watch list", "watch stop", "watcher list", "watcher stop"}
    | {"auth git-credential", "auth setup-git"}
)
LAST = ("logout", "login")


def words_of(path: str) -> list[str]:
    """The command with a plausible word for each required argument, and a yes to every question."""
    wanted = [param for param in build(path).params if param.param_type_name == "argument" and param.required]
    more = ["-m", "Second"] if path == "push" else []
    return [*path.split(), *(WORDS.get(param.name, "word") for param in wanted), *more, "--yes"]


@pytest.fixture
def cut(tmp_path: Path, svc: Svc, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Svc, Cable]]:
    """Commands in a linked folder with an unsealed edit, and the cable to its server."""
    cable = Cable()
    (tmp_path / "relay").mkdir()
    node = Node(tmp_path / "relay", cable.address)
    cable.upstream = node.port
    place = Place(tmp_path / "machines", node, f"t{os.getpid()}")
    place.write(place.ann, "src/a.txt", "one\n")
    place.ann.ok("push", "-m", "First")
    place.write(place.ann, "src/a.txt", "two\n")
    monkeypatch.setenv("SVC_HOME", str(place.ann.home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setenv("SVC_SERVER", cable.address)
    monkeypatch.chdir(place.ann.folder)
    yield svc, cable
    cable.close()
    node.close()


def files() -> dict[Path, bytes]:
    return {
        file: file.read_bytes() for file in Path().rglob("*") if file.is_file() and ".svc" not in file.parts
    }


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_every_command_says_that_the_server_is_gone(
    cut: tuple[Svc, Cable], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    svc, cable = cut
    if how == "refused":
        cable.unplug()
    else:
        cable.cut()
        cable.silent = True
        cable.mend()
    monkeypatch.setattr(client, "BACKOFF", 0.001)
    monkeypatch.setattr(silence, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(silence, "ASKING_SECONDS", 0.1)
    before, wrong = files(), []
    for path in [*(path for path in sorted(COMMANDS) if path not in (*STAYS, *LAST)), *LAST]:
        began = time.monotonic()
        told = svc(*words_of(path))
        took = time.monotonic() - began
        gone = re.fullmatch(r"svc: [^\n]*(cannot reach|did not answer)[^\n]*; [^\n]+\n", told.err)
        if path in WORKS:
            right = told.code in (0, 1, 2) and "Traceback" not in told.err
            before = files()
        else:
            right = (told.code == 1 and gone is not None) or (told.code == 2 and told.err.startswith("svc: "))
            right = right and told.out == ""
        if not right or took > 20 or files() != before:
            wrong.append((path, told.code, round(took, 1), told.err[:300], told.out[:80]))
            before = files()
    assert wrong == [], "\n".join(map(str, wrong))


def test_a_command_that_cannot_reach_the_server_names_the_queue_where_it_has_it(
    cut: tuple[Svc, Cable], monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, cable = cut
    cable.unplug()
    monkeypatch.setattr(client, "BACKOFF", 0.001)
    plain = [path for path in sorted(COMMANDS) if path not in (*STAYS, *LAST)]
    naming = {path for path in plain if "with --queue the change is kept here" in svc(*words_of(path)).err}
    queues = {path for path in plain if is_queueable(function_of(path))}
    unfinished = {"issue comment", "issue edit", "issue react", "label edit", "repo edit"}  # refused before
    unfinished |= {path for path in queues if path.startswith("pr ") and path != "pr label add"}  # no number
    unfinished |= {"issue create"}  # no title, so an editor opens
    assert naming == queues - unfinished >= {"issue close", "label create"}
    for words in (
        ["issue", "create", "-t", "x"],
        ["issue", "comment", "1", "-b", "x"],
        ["issue", "react", "1", "heart"],
        ["repo", "edit", "-d", "x"],
        ["pr", "comment", "1", "-b", "x"],
        ["pr", "react", "1", "heart"],
        ["pr", "close", "1"],
        ["pr", "edit", "1", "-t", "x"],
        ["pr", "label", "add", "1", "bug"],
    ):
        assert "with --queue the change is kept here" in svc(*words).err
    for words in (
        ["pr", "close", "topic"],
        ["pr", "close", "1", "-c", "x"],
        ["pr", "comment", "1", "--discard", "all"],
    ):
        assert "--queue" not in svc(*words).err, words
    told = svc("label", "create", "bug", "-R", "somebody/else")  # where nobody knows which repository that is
    assert (told.code, "--queue" in told.err) == (1, False)


def test_an_action_waits_until_the_server_has_it(
    cut: tuple[Svc, Cable], monkeypatch: pytest.MonkeyPatch
) -> None:
    svc, cable = cut
    monkeypatch.setattr(client, "BACKOFF", 0.001)
    cable.unplug()
    told = svc("label", "create", "bug", "--queue")
    assert (told.code, "sent" in told.err) == (0, False)
    told = svc("queue", "retry")
    assert (told.code, told.out, "Nothing was sent; 1 action still waiting" in told.err) == (1, "", True)
    (entry,) = json.loads(svc("queue", "list", "--json", "state,attempts").out)
    assert entry == {"state": "waiting", "attempts": 1}


def test_how_long_a_command_waits_for_a_server_that_is_gone() -> None:
    pauses = [client.BACKOFF * 2**attempt for attempt in range(client.ATTEMPTS - 1)]
    assert sum(pauses) < 2  # its port refuses
    assert client.CONNECT_TIMEOUT <= 10  # nothing answers at its address
    assert silence.SILENT_SECONDS + silence.ASKING_SECONDS < 15  # it is silent
