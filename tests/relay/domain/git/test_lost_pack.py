"""A pack that the node has lost: git is told what is lost, at once, and clones once it is back."""

from __future__ import annotations

import os
import time
from typing import NoReturn

import pytest

from relay.domain.git import cache, serving
from relay.objects.backend import PackGone
from tests.patience import PATIENCE
from tests.relay.conftest import Relay
from tests.relay.domain.git.conftest import Git
from tests.relay.domain.git.test_refused import Client, Maker
from tests.relay.histories import own


def test_git_is_told_which_pack_is_lost(
    relay: Relay, git: Git, account: Maker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = own(account, client, visibility="public")
    mine.seal({"a.bin": b"\0" + os.urandom(9_000_000)})
    packs = type(relay.node.objects.packs)

    def lose(self: object, name: str, *_: object) -> NoReturn:
        raise PackGone(name, "is gone")

    with monkeypatch.context() as lost:
        lost.setattr(serving, "WAITED", 10 * PATIENCE)  # nobody waits as long as a build may take
        for method in ("read", "read_with", "show"):
            lost.setattr(packs, method, lose)
        told = git.tried("clone", "-q", git.address(mine), "work")
    assert told.returncode == 128
    assert "cannot be made ready for git: pack " in told.stderr
    assert "relay audit" in told.stderr
    monkeypatch.setattr(cache, "_FAULT_SECONDS", 0.0)
    until = time.monotonic() + PATIENCE
    while git.tried("clone", "-q", git.address(mine), "work").returncode:
        assert time.monotonic() < until
    assert (git.folder / "work/a.bin").stat().st_size == 9_000_001
