"""A day of a team through `svc`: three devices of two people at two relays of one database, one of which dies
at noon. What one device does at its relay, the others see at theirs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.cable import Cable
from tests.campaign.conftest import handle_of
from tests.campaign.together.relays import Relays, serving
from tests.campaign.world import Machine, Ran
from tests.patience import until

PAGE = "".join(f"line {n}\n" for n in range(1, 21))


class Device:
    """A machine and the relay that it reaches."""

    def __init__(self, base: Path, name: str, relays: Relays, at: int) -> None:
        self.machine, self.relays, self.at = Machine(base, name, relays), relays, at

    @property
    def folder(self) -> Path:
        return self.machine.folder

    def run(self, *words: str, **how: Any) -> Ran:
        self.relays.lead_to(self.at)
        return self.machine.run(*words, **how)

    def ok(self, *words: str, **how: Any) -> str:
        done = self.run(*words, **how)
        assert done.code == 0, (self.machine.name, words, done)
        return done.out

    def refused(self, *words: str, says: str) -> None:
        done = self.run(*words)
        assert done.code == 1, (words, done)
        assert says in done.err, (words, done.err)

    def json(self, *words: str) -> Any:
        return json.loads(self.ok(*words))

    def write(self, name: str, old: str, new: str) -> None:
        file = self.folder / name
        text = file.read_text() if file.exists() else ""
        assert old in text
        file.write_text(text.replace(old, new) if old else text + new)

    def hears(self, reason: str, number: int) -> None:
        """Wait until the inbox has this, which a follower writes."""

        def there() -> bool:
            rows = self.json("inbox", "--json", "reason,subject")
            return (reason, number) in [(one["reason"], one["subject"]["number"]) for one in rows]

        until(there, f"{self.machine.name} hears {reason} of #{number}")


@pytest.fixture
def relays(tmp_path: Path) -> Iterator[Relays]:
    cable = Cable()
    (tmp_path / "relays").mkdir()
    try:
        with serving(tmp_path / "relays", cable) as found:
            yield found
    finally:
        cable.close()


def test_a_day_of_a_team(relays: Relays, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    ann, ben = f"{handle_of(request)}a", f"{handle_of(request)}b"
    laptop, desk = Device(tmp_path, "laptop", relays, 0), Device(tmp_path, "desk", relays, 1)
    bens = Device(tmp_path, "bens", relays, 1)
    repo = f"{ann}/notes"

    # Morning: Ann makes the repository and its rules, and asks Ben in.
    laptop.ok("login", "--device-key", "--handle", ann)
    code = laptop.ok("auth", "device", "add").split()[0]
    desk.ok("login", "--device-key", "--handle", ann, "--pair", code)
    bens.ok("login", "--device-key", "--handle", ben)
    laptop.ok("repo", "create", "notes")
    laptop.ok("repo", "init", repo)
    laptop.write("page.txt", "", PAGE)
    laptop.ok("push", "-m", "The page")
    laptop.ok("label", "create", "bug", "-c", "d73a4a")
    laptop.ok("issue", "create", "-t", "Line 3 is wrong", "-b", f"See page.txt, @{ben}", "-l", "bug")
    bens.refused("repo", "view", repo, says="does not exist or is hidden")
    laptop.ok("repo", "collaborator", "add", ben, "--role", "write")
    laptop.ok("repo", "protect", "set", "main", "--require-review", "--require-checks")
    laptop.ok("repo", "checks", "enable", "ci/test")
    bens.ok("repo", "invite", "accept", repo)
    bens.ok("repo", "clone", repo, str(bens.folder), where=tmp_path)
    desk.ok("repo", "clone", repo, str(desk.folder), where=tmp_path)

    # Ben mends it on a branch and proposes that; main itself takes no push.
    bens.ok("issue", "comment", "1", "-b", "I have it")
    laptop.hears("author", 1)
    bens.write("page.txt", "line 3\n", "line three\n")
    bens.refused("push", "-m", "Straight to main", says="svc switch")
    bens.ok("repo", "branch", "mend", "--from", "main")
    bens.ok("switch", "mend")
    bens.ok("push", "-m", "Name line 3")
    bens.ok("pr", "create", "-t", "Name line 3", "-b", "Closes #1", "--reviewer", ann)
    bens.refused("pr", "merge", "2", says="approv")

    # Ann reviews at her desk: a suggestion on one line, and a verdict.
    desk.hears("review_requested", 2)
    desk.ok("pr", "checkout", "2")
    assert "line three\n" in (desk.folder / "page.txt").read_text()
    desk.ok(
        "pr", "comment", "2", "-p", "page.txt", "-l", "3", "--suggest", "Line three", "-b", "A capital", "-d"
    )
    desk.ok("pr", "review", "2", "--request-changes", "-b", "Nearly")
    bens.hears("author", 2)
    (thread,) = bens.json("pr", "threads", "2", "--json", "id,start,path")
    assert (thread["start"], thread["path"]) == (3, "page.txt")
    bens.ok("pr", "apply", "2", thread["id"])
    bens.ok("pull")
    assert "Line three\n" in (bens.folder / "page.txt").read_text()
    assert "+Line three" in desk.ok("pr", "diff", "2", "--since-review")

    # Noon: the relay of Ben and of Ann's desk dies; both go on at the other one.
    relays.slay(1)
    desk.at = bens.at = 0
    assert bens.run("pr", "checks", "2", "--exit-status").code == 8
    bens.ok("repo", "run", "create", "ci/test", "--seal", "mend", "--conclusion", "failure")
    assert laptop.run("pr", "checks", "2", "--exit-status").code == 1
    desk.ok("pr", "review", "2", "--approve")
    bens.refused("pr", "merge", "2", says="required checks")
    bens.ok("pr", "merge", "2", "--squash", "--auto")
    bens.ok("repo", "run", "create", "ci/test", "--seal", "mend", "--conclusion", "success")
    until(
        lambda: laptop.json("pr", "view", "2", "--json", "state")["state"] == "merged",
        "the signed merge lands with its last condition",
    )
    assert laptop.json("issue", "view", "1", "--json", "state")["state"] == "closed"

    # Afternoon: the relay is back. Two proposals change one line; the second conflicts and gets out of it.
    relays.revive(1)
    desk.at = bens.at = 1
    laptop.ok("repo", "protect", "clear", "main", "--yes")
    for device in (laptop, desk, bens):
        device.ok("switch", "main")
        device.ok("pull")
        assert (device.folder / "page.txt").read_text() == PAGE.replace("line 3\n", "Line three\n")
    for device, branch, said in ((laptop, "first", "nine, by Ann"), (bens, "second", "nine, by Ben")):
        device.ok("repo", "branch", branch, "--from", "main")
        device.ok("switch", branch)
        device.write("page.txt", "line 9\n", f"line {said}\n")
        device.ok("push", "-m", f"Line {said}")
        device.ok("pr", "create", "--fill")
    laptop.ok("pr", "merge", "3", "--delete-branch")
    bens.refused("pr", "merge", "4", "--squash", says="page.txt")
    assert bens.run("merge", "main").code == 1
    assert bens.run("conflicts", "--jq", ".[].path").out == "page.txt\n"
    bens.ok("resolve", "page.txt", "--mine")
    bens.ok("push", "-m", "Join main")
    bens.ok("pr", "merge", "4", "--delete-branch")

    # Evening: a release with a file, which everybody gets whole; nothing is left open.
    built = os.urandom(300_000)
    (desk.folder / "built.bin").write_bytes(built)
    desk.ok("switch", "main", "--merge")
    desk.ok("repo", "release", "create", "v1.0.0", "built.bin", "--from", "main", "--notes", "The first")
    bens.ok("repo", "release", "download", "v1.0.0", "-D", str(tmp_path / "got"))
    assert (tmp_path / "got" / "built.bin").read_bytes() == built
    (desk.folder / "built.bin").unlink()
    texts = set()
    for device in (laptop, desk, bens):
        device.ok("switch", "main")
        device.ok("pull")
        texts.add((device.folder / "page.txt").read_text())
        assert device.json("pr", "list", "--json", "number") == []
        assert device.json("issue", "list", "--json", "number") == []
        assert device.json("queue", "list", "--json", "action") == []
    assert texts == {PAGE.replace("line 3\n", "Line three\n").replace("line 9\n", "line nine, by Ben\n")}
    actions = [one["action"] for one in laptop.json("repo", "audit", "--json", "action", "-L", "100")]
    assert actions.count("proposal.merge") == 3, actions
