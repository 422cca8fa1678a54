"""Screens of what happens seldom, at three sizes: a refused action, an advisory, and the account."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import buckets, databases
from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_snapshots import compare, dumped, home
from tui.app import SvcApp

__all__ = ["project"]
Open = Callable[..., SvcApp]
SIZES = [(80, 24), (140, 40), (200, 50)]
# A relay of an edition that publishes advisories; a build says which one it is, and no setting does.
BUSINESS = (
    "from relay.base import edition; edition.EDITION = 'self-hosted-business'; "
    "from relay.run.cli import main; main()"
)
SERVE = ("serve", "--dev", "--port", "0", "--data")
ROOM = {"PYTHONPATH": str(ROOT)}
KEY = re.compile(r"(?<=me@desk  )[\w-]{12}(?=  )")  # the id of a device's key
DAYS = re.compile(r"\b\d{5}(?= days\b)")  # since 1970, where the clock stands; a narrow cell cuts the words
DETAILS = "## What\n\nIt reads **beyond** the end:\n\n- all versions before 1.3.1\n\nsee #1"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a relay that publishes advisories."""
    data = tmp_path_factory.mktemp("business")
    with (data / "log").open("w") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                BUSINESS,
                "serve",
                "--dev",
                "--port",
                "0",
                "--data",
                str(data / "data"),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                **databases.variables(data),
                **buckets.variables(data),
            },
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on " in line, (data / "log").read_text()[-3000:]
        yield line.split("listening on ")[1].strip()
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device is called after its user and its machine; here all are called the same."""
    monkeypatch.setenv("LOGNAME", "me")
    monkeypatch.setattr("platform.node", lambda: "desk")


def advise(alice: Svc, package: str) -> None:
    """Make the repository public, with an advisory about a package that it depends on, and an open issue."""
    Path("package.json").write_text(f'{{"dependencies": {{"{package}": "1.3.0", "right-pad": "1.0.0"}}}}')
    assert alice("push", "-m", "Third").code == 0
    assert alice("repo", "visibility", "public", "--yes").code == 0
    assert alice("label", "create", "crash", "--color", "d73a4a").code == 0
    assert alice("issue", "create", "-t", "Stalls at night", "-b", "It hangs.").code == 0
    made = alice("repo", "reports", "create", "-t", "Reads beyond", "-b", DETAILS, "--severity", "high")
    assert made.code == 0, made.err
    report = made.out.split()[-1]
    done = alice("repo", "reports", "decide", report, "--published", "--affected", f"npm:{package}<1.3.1")
    assert done.code == 0, done.err


@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_states_look_as_they_did(
    project: str, alice: Svc, open_app: Open, width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    advise(alice, f"left-pad-{width}")  # advisories of a package count for all repositories of the relay
    app = open_app()
    app.clock = lambda: 0.0
    found: dict[str, str] = {}
    async with app.run_test(size=(width, height)) as pilot:
        await sees(pilot, "● live", "Repositories 1")
        await press(pilot, "a")
        await sees(pilot, "Sessions 1", "Devices 1")
        await press(pilot, "g")
        await settle(pilot)
        found["account"] = DAYS.sub("n" * 5, KEY.sub("k" * 12, dumped(app)))
        await home(pilot)
        await press(pilot, "enter", "6")
        await sees(pilot, "Reads beyond", "left-pad", "Protection rules")
        await press(pilot, "g", "j")
        await sees(pilot, "Reads beyond", *(["all versions before"] if width >= 100 else []))
        await settle(pilot)
        found["advisory"] = dumped(app)
        await press(pilot, "3")
        await sees(pilot, "#1 Stalls at night")
        await press(pilot, "enter")
        await sees(pilot, "It hangs.")
        await press(pilot, "l")
        await sees(pilot, "crash")
        assert alice("repo", "archive", "--yes").code == 0
        await press(pilot, "space", "enter")
        await sees(pilot, "refused")
        await press(pilot, "s")
        await sees(pilot, "✗ refused")
        await press(pilot, "G")
        await sees(pilot, "✗ refused", "archived", *(["tries it again"] if width >= 100 else []))
        await settle(pilot)
        found["refused"] = dumped(app)
    compare(found, width, height)
