"""What a relay that lies can do to a folder: nothing. One sentence, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from localstore.core.encoding import b64u, hex_digest, unb64u
from localstore.core.model.live import Row as WireRow
from localstore.core.model.seal import SealChange
from localstore.folder.link import read_repo
from tests.campaign.conftest import Place
from tests.campaign.liar import Liar
from tests.campaign.world import Machine
from tests.localstore.core.lane.test_load_cost import across
from tests.localstore.core.updates import encode

OTHER = "0" * 64
ROW, CHANGE = WireRow.__struct_fields__, SealChange.__struct_fields__  # both travel as arrays
PATH = ROW.index("path")


def pushed(place: Place) -> str:
    """Two files in a first seal; its id."""
    place.write(place.ann, "a.txt", "one\n")
    place.write(place.ann, "d/b.bin", b"\0\1")
    return str(place.ann.ok("push", "-m", "first", "--json").json()["seal"])


def outside(place: Place) -> set[str]:
    """All files beside the machines' own folders."""
    return {
        path.relative_to(place.base).as_posix()
        for path in place.base.rglob("*")
        if path.is_file() and "home" not in path.parts and ".svc" not in path.parts
    }


def in_tree(change: Callable[[dict[str, Any]], object]) -> Callable[[str, Any], Any]:
    def twist(path: str, answer: Any) -> Any:
        if "/tree/" in path:
            change(answer)
        return answer

    return twist


def in_seal(change: Callable[[dict[str, Any]], object]) -> Callable[[str, Any], Any]:
    def twist(path: str, answer: Any) -> Any:
        if "/seals/" in path:
            change(answer)
        return answer

    return twist


def rename(path: str) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree["entries"][0].update(path=path)


def flipped(text: str) -> str:
    data = bytearray(unb64u(text))
    data[-1] ^= 1
    return b64u(bytes(data))


def part(tree: dict[str, Any]) -> None:
    tree.update(tree_key=None, tree_key_id=None)
    tree["entries"][0]["blake3"] = OTHER


LIES = {
    "path above": in_tree(rename("../x")),
    "path inside and above": in_tree(rename("d/../../x")),
    "absolute path": in_tree(rename("/tmp/x")),
    "path with NUL": in_tree(rename("a\0b")),
    "our own folder": in_tree(rename(".svc/repo.json")),
    "git's folder": in_tree(rename(".GIT/hooks/post-checkout")),
    "another name": in_tree(rename("other.txt")),
    "symlink": in_tree(lambda tree: tree["entries"][0].update(kind="symlink")),
    "wrong digest": in_tree(lambda tree: tree["entries"][0].update(blake3=OTHER)),
    "no digest": in_tree(lambda tree: tree["entries"][0].update(blake3="xyz")),
    "wrong size": in_tree(lambda tree: tree["entries"][0].update(size=7)),
    "negative size": in_tree(lambda tree: tree["entries"][0].update(size=-7)),
    "left out": in_tree(lambda tree: tree["entries"].pop()),
    "twice": in_tree(lambda tree: tree["entries"].append({**tree["entries"][0], "blake3": OTHER})),
    "a part, unverifiable": in_tree(part),
    "another tree key": in_tree(lambda tree: tree.update(tree_key=b64u(bytes(32)))),
    "signature": in_seal(lambda seal: seal["signature"].update(value=flipped(seal["signature"]["value"]))),
    "signed bytes": in_seal(lambda seal: seal.update(payload=flipped(seal["payload"]))),
    "key": in_seal(lambda seal: seal["key"].update(public_key=b64u(bytes(32)))),
    "id": in_seal(lambda seal: seal.update(id=OTHER)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_clone_of_a_lie_writes_nothing(lie: str, lying: Place, liar: Liar) -> None:
    pushed(lying)
    bob = lying.machine("bob", clone=False)
    before = outside(lying)
    liar.twist = LIES[lie]
    done = bob.run("repo", "clone", lying.repo, str(bob.folder), where=lying.base)
    assert done.code == 1
    assert done.err.startswith("svc: ")
    assert len(done.err.splitlines()) <= 2
    assert bob.files() == {}
    assert outside(lying) == before
    liar.twist = None
    bob.ok("repo", "clone", lying.repo, str(bob.folder), where=lying.base)
    assert bob.files() == lying.ann.files()


def test_what_is_called_a_part_is_what_its_proof_shows(lying: Place, liar: Liar) -> None:
    pushed(lying)
    bob = lying.machine("bob", clone=False)
    liar.twist = in_tree(lambda tree: tree.update(filtered=True, entries=[], tree_key=None, tree_key_id=None))
    bob.ok("repo", "clone", lying.repo, str(bob.folder), where=lying.base)
    assert bob.files() == lying.ann.files()


def test_a_seal_of_another_repository_or_an_older_one_is_refused(lying: Place, liar: Liar) -> None:
    first = pushed(lying)
    lying.write(lying.ann, "a.txt", "two\n")
    second = lying.ann.ok("push", "-m", "second", "--json").json()["seal"]
    bob = lying.machine("bob", clone=False)
    told: dict[str, Any] = {}

    def remember(path: str, answer: Any) -> Any:
        told[path.partition("/repos/")[2].partition("?")[0].partition("/")[2]] = answer
        return answer

    liar.twist = remember
    lying.ann.ok("restore", "a.txt", "--source", first)
    assert lying.ann.files()["a.txt"] == b"one\n"

    def older(path: str, answer: Any) -> Any:
        for kind in ("seals", "tree"):
            if f"/{kind}/" in path:
                return told[f"{kind}/{first}"]
        return answer

    liar.twist = older
    done = bob.run("repo", "clone", lying.repo, str(bob.folder), where=lying.base)
    assert (done.code, bob.files()) == (1, {})
    assert f"asked for seal {second[:12]}, got {first[:12]}" in done.err

    liar.twist = None
    stranger = Place(lying.base / "other", lying.node, lying.handle + "x")
    foreign = pushed(stranger)
    liar.twist = remember
    stranger.ann.ok("repo", "clone", stranger.repo, "again", where=lying.base / "other")

    def of_another(path: str, answer: Any) -> Any:
        if "/refs/" in path:
            return {**answer, "head": foreign}
        return answer

    liar.twist = of_another
    repo_id = read_repo(lying.ann.folder).repo_id
    liar.made_up[f"/api/v1/repos/{repo_id}/seals/{foreign}"] = msgspec.json.encode(told[f"seals/{foreign}"])
    carl = lying.machine("carl", clone=False)
    done = carl.run("repo", "clone", lying.repo, str(carl.folder), where=lying.base)
    assert (done.code, carl.files()) == (1, {})
    assert "another repository" in done.err
    liar.twist = None
    for one in (bob, carl):  # goes on where it was cut off
        found = one.ok("repo", "clone", lying.repo, str(one.folder), "--json", where=lying.base).json()
        assert found["seal"] == second


def test_a_head_of_a_history_that_the_folder_does_not_share_is_refused(lying: Place, liar: Liar) -> None:
    """The relay says that a seal of a stranger's began this repository, as it may say of a fork's."""
    pushed(lying)
    bob = lying.machine("bob")
    stranger = Place(lying.base / "other", lying.node, lying.handle + "x")
    foreign = pushed(stranger)
    told: dict[str, Any] = {}

    def remember(path: str, answer: Any) -> Any:
        told[path] = answer
        return answer

    liar.twist = remember
    stranger.ann.ok("repo", "clone", stranger.repo, "again", where=lying.base / "other")
    theirs, ours = read_repo(stranger.ann.folder).repo_id, read_repo(bob.folder).repo_id
    for path, answer in told.items():
        if foreign in path:
            lie = {**answer, "origin": theirs} if "/seals/" in path else answer
            liar.made_up[path.replace(theirs, ours)] = msgspec.json.encode(lie)
    liar.twist = lambda path, answer: {**answer, "sealed_head": foreign} if "bootstrap" in path else answer
    done = bob.run("pull")
    assert "shares nothing of" in done.err, done
    assert done.code == 1
    assert bob.files() == {"a.txt": b"one\n", "d/b.bin": b"\0\1"}
    liar.twist = None
    bob.ok("pull")


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/tmp/x",
        "d/../../x",
        ".svc/repo.json",
        ".git/config",
        "a\0b",
        "d\\..\\x",
        "CON/../../x",
        "\u202e",
    ],
)
def test_a_frontier_with_hostile_paths_writes_nothing_outside(path: str, lying: Place, liar: Liar) -> None:
    pushed(lying)
    bob = lying.machine("bob")
    lying.write(lying.ann, "a.txt", "two\n")
    lying.ann.ok("push", "-m", "second")
    before = outside(lying)

    def twist(asked: str, answer: Any) -> Any:
        if asked.endswith("/live/bootstrap"):
            for row in answer["rows"]:
                row[PATH] = path
        return answer

    link = (bob.folder / ".svc" / "repo.json").read_bytes()
    liar.twist = twist
    done = bob.run("pull", "--merge")
    assert done.code in (0, 1)
    assert outside(lying) - before <= {f"bob/work/{path}"}
    assert (bob.folder / ".svc" / "repo.json").read_bytes() == link
    assert (bob.folder / "a.txt").read_bytes() == b"one\n"
    liar.twist = None


WRONG: dict[str, Any] = {
    "digest": OTHER,
    "gen": -1,
    "epoch": 1 << 60,
    "size": -5,
    "ver": 1 << 70,
    "kind": "symlink",
    "live": "yes",
    "other": None,
}


@pytest.mark.parametrize("member", [*WRONG, "state"])
def test_a_frontier_that_contradicts_itself_overwrites_nothing(member: str, lying: Place, liar: Liar) -> None:
    pushed(lying)
    bob = lying.machine("bob")
    lying.write(lying.ann, "a.txt", "two\n")
    lying.ann.ok("push", "-m", "second")
    lying.write(bob, "a.txt", "mine\none\n")

    def twist(asked: str, answer: Any) -> Any:
        if asked.endswith("/live/bootstrap"):
            for row in answer["rows"]:
                if member in WRONG:
                    row[ROW.index(member)] = WRONG[member]
        if asked.endswith("/live/lanes"):
            for lane in answer["lanes"]:
                lane.update({"state": b64u(b"\0\1\2")} if member == "state" else {})
        return answer

    liar.twist = twist
    done = bob.run("pull", "--merge")
    assert done.code in (0, 1)
    liar.twist = None
    kept = b"".join(bob.files().values()) + b"".join(bob.trash())
    assert b"mine" in kept
    settled(bob)
    assert b"mine" in b"".join(bob.files().values())


def test_a_file_that_is_edited_after_a_wrong_digest_comes_through(lying: Place, liar: Liar) -> None:
    pushed(lying)
    bob = lying.machine("bob")
    lying.write(lying.ann, "a.txt", "one\ntwo\nthree\n")
    lying.ann.ok("push", "-m", "second")

    def twist(asked: str, answer: Any) -> Any:
        if asked.endswith("/live/bootstrap"):
            for row in answer["rows"]:
                row[ROW.index("digest")] = OTHER
        return answer

    liar.twist = twist
    assert bob.run("pull").code == 1
    liar.twist = None
    assert bob.files()["a.txt"] == b"one\n"
    lying.write(bob, "a.txt", "mine\none\n")
    settled(bob)
    assert bob.files()["a.txt"] == b"mine\none\ntwo\nthree\n"


def settled(machine: Machine) -> None:
    """With an honest relay the same commands finish the work."""
    machine.joined("pull", "--merge")
    machine.keep_both()
    machine.ok("push", "-m", "after all")


def test_other_bytes_in_a_pack_are_refused(lying: Place, liar: Liar) -> None:
    pushed(lying)
    bob = lying.machine("bob", clone=False)

    def bend(asked: str, body: bytes) -> bytes:
        if asked.endswith("/packs/fetch"):
            return body[:-1] + bytes([body[-1] ^ 1])
        return body

    liar.bend = bend
    done = bob.run("repo", "clone", lying.repo, str(bob.folder), where=lying.base)
    assert (done.code, bob.files().get("a.txt") in (None, b"one\n")) == (1, True)
    liar.bend = None
    bob.ok("repo", "clone", lying.repo, str(bob.folder), where=lying.base)
    assert bob.files() == lying.ann.files()


@pytest.mark.parametrize("member", ["content_digest", "digest", "bytes", "changes"])
def test_a_prepared_seal_that_is_not_ours_is_not_signed(member: str, lying: Place, liar: Liar) -> None:
    first = pushed(lying)
    lying.write(lying.ann, "a.txt", "two\n")

    def twist(asked: str, answer: Any) -> Any:
        if asked.endswith("/seal/prepare"):
            lie: Any = {"content_digest": OTHER, "digest": OTHER, "bytes": flipped(answer["bytes"])}.get(
                member
            )
            if member == "changes":
                answer["changes"][0][CHANGE.index("digest")] = OTHER
            else:
                answer[member] = lie
        return answer

    liar.twist = twist
    done = lying.ann.run("push", "-m", "mine")
    assert done.code == 1
    assert not any(path.endswith("/finalize") for _, path, _, _ in liar.asked[-3:])
    liar.twist = None
    assert lying.ann.ok("push", "-m", "mine", "--json").json()["seal"] not in (None, first)


HEAVY = encode(across(16_000))


def test_edits_that_are_too_costly_to_load_are_named_and_the_rest_arrives(lying: Place, liar: Liar) -> None:
    """112 KB that the text library would work on for half a minute."""
    pushed(lying)
    bob = lying.machine("bob")
    lying.write(lying.ann, "a.txt", "two\n")
    lying.write(lying.ann, "c.txt", "new\n")
    lying.ann.ok("push", "-m", "second")
    lying.write(bob, "a.txt", "mine\none\n")
    text = b"r" * 16_000 + b"x" * 16_000

    def twist(asked: str, answer: Any) -> Any:
        if asked.endswith("/live/bootstrap"):
            for row in answer["rows"]:
                row[8:] = [True]  # ask for the state of each
        if asked.endswith("/live/lanes"):
            for lane in answer["lanes"]:
                if lane["path"] == "a.txt":
                    lane.update(state=b64u(HEAVY), digest=hex_digest(text), size=len(text))
        return answer

    liar.twist = twist
    done = bob.run("pull", "--merge")
    liar.twist = None
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert "the server sent invalid edits of a.txt" in done.err
    assert "too long" in done.err
    assert (bob.files()["a.txt"], bob.files()["c.txt"]) == (b"mine\none\n", b"new\n")
    settled(bob)
    files = bob.files()  # both changed the one line: theirs stays, mine has a file of its own
    assert files.pop("a.txt") == b"two\n"
    assert list(files.values()).count(b"mine\none\n") == 1
