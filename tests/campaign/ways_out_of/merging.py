"""Ways out of errors about edits of several people that meet."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import msgspec

from localstore.core.model.live import LaneMoved, UpdateAnswers, UpdateBatch
from svc.api.sync_transport import BranchTransport
from svc.flows import push
from tests.campaign.conftest import Place
from tests.campaign.test_merging import dies_before_sealing
from tests.campaign.ways_out import first_push, refused, row
from tests.campaign.world import Machine

Send = Callable[[BranchTransport, UpdateBatch], UpdateAnswers]
TRUE_WAY = BranchTransport.updates
PAGE = "one\ntwo\nthree\nfour\nfive\n"


def _sending(way: Send, pulls: int = push.PULLS) -> Callable[[], None]:
    """For `before`: this command sends its updates this way, and pulls as often before it gives up."""

    def change() -> None:
        push.PULLS = pulls
        BranchTransport.updates = way  # type: ignore[method-assign, assignment]

    return change


def _two_with_a_page(place: Place) -> Machine:
    """Bob's folder. Ann has the same `page.txt`."""
    place.write(place.ann, "page.txt", PAGE)
    place.ann.ok("push", "-m", "first")
    return place.machine("bob")


def _conflict(place: Place) -> tuple[Machine, str]:
    """Bob's folder, where two versions of `page.txt` stand against each other, and the name of his."""
    bob = _two_with_a_page(place)
    place.write(place.ann, "page.txt", PAGE.replace("three", "ann"))
    place.ann.ok("push", "-m", "ann")
    place.write(bob, "page.txt", PAGE.replace("three", "bob"))
    bob.conflicting("pull", "--merge")
    (copy,) = [path for path in bob.files() if ".sync-conflict-" in path]
    return bob, copy


@row("local_edits", "pull", "switch")
def _edits_in_the_way(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "branch", "side")
    bob = place.machine("bob")
    bob.ok("switch", "side")
    place.write(bob, "a.txt", "side\none\n")
    bob.ok("push", "-m", "side")
    place.write(place.ann, "a.txt", "one\nann\n")
    refused(place.ann, "pull", says="pull --merge")
    place.ann.ok("pull", "--merge")
    refused(place.ann, "switch", "side", says="switch side --merge")
    place.ann.ok("switch", "side", "--merge")
    assert place.ann.files()["a.txt"] == b"side\none\nann\n"
    place.ann.ok("pull", "--force")
    place.ann.ok("switch", "main")
    place.write(place.ann, "a.txt", "ann\n")
    refused(place.ann, "switch", "side", says="switch side --force")
    place.ann.ok("switch", "side", "--force")
    place.write(place.ann, "a.txt", "ann again\n")
    refused(place.ann, "pull", says="pull --force")
    place.ann.ok("pull", "--force")
    assert place.ann.files() == bob.files()
    assert {b"ann\n", b"ann again\n"} <= set(place.ann.trash())


@row("lane_moved", "pull")
def _the_text_moved(place: Place) -> None:
    """A push sees to it by itself. One that does not pull shows what the relay says."""
    bob = _two_with_a_page(place)
    place.write(place.ann, "page.txt", PAGE.replace("one", "one, by ann"))
    place.write(bob, "page.txt", PAGE.replace("five", "five, by bob"))

    def bobs() -> None:
        _sending(TRUE_WAY)()
        dies_before_sealing()

    def crossed(transport: BranchTransport, batch: UpdateBatch) -> UpdateAnswers:
        assert bob.run("push", "-m", "live", before=bobs).code == -signal.SIGKILL
        found = TRUE_WAY(transport, batch)
        print(*(answer.detail for answer in found.answers), file=sys.stderr)
        return found

    sends = _sending(crossed, pulls=0)
    done = refused(place.ann, "push", "-m", "ann", says="pull --merge, then push again", before=sends)
    assert str(LaneMoved("page.txt")) in done.err
    place.ann.ok("pull", "--merge")
    place.ann.ok("push", "-m", "both")
    both = PAGE.replace("one", "one, by ann").replace("five", "five, by bob")
    assert place.ann.files()["page.txt"] == both.encode()


@row("edits_conflict", "pull")
def _a_conflict_foretold(place: Place) -> None:
    """A dry run stops where the push would, and leaves no two files to look at."""
    bob = _two_with_a_page(place)
    place.write(place.ann, "page.txt", PAGE.replace("three", "ann"))
    assert place.ann.run("push", "-m", "live", before=dies_before_sealing).code == -signal.SIGKILL
    mine = PAGE.replace("three", "bob").encode()
    place.write(bob, "page.txt", mine.decode())
    said = refused(bob, "push", "--dry-run", says="pull --merge, look at both files").err
    assert "would be kept" in said
    assert bob.files() == {"page.txt": mine}
    bob.conflicting("pull", "--merge")
    assert sorted(bob.files().values()) == sorted([PAGE.replace("three", "ann").encode(), mine])
    bob.ok("resolve", "page.txt", "--mine")
    bob.ok("push", "-m", "both")


@row("conflicts_unresolved", "resolve")
def _a_copy_of_a_conflict_is_not_published(place: Place) -> None:
    bob, copy = _conflict(place)
    for words in (("push", "-m", "both"), ("push", "--dry-run")):
        assert copy in refused(bob, *words, says="resolve page.txt").err
    bob.ok("resolve", "page.txt", "--mine")
    bob.ok("push", "-m", "mine")
    place.ann.ok("pull")
    assert place.ann.files() == bob.files() == {"page.txt": PAGE.replace("three", "bob").encode()}


@row("conflict", "pull")
def _others_keep_winning(place: Place) -> None:
    """They seal a new version of the text whenever mine is sent, and each of my tries comes too late."""
    bob = _two_with_a_page(place)
    place.write(place.ann, "page.txt", PAGE.replace("one", "one, by ann"))

    def late(transport: BranchTransport, batch: UpdateBatch) -> UpdateAnswers:
        bob.ok("pull", "--merge")
        place.write(bob, "page.txt", bob.files()["page.txt"].decode() + "bob\n")
        bob.ok("push", "-m", "bob", before=_sending(TRUE_WAY))
        return TRUE_WAY(transport, batch)

    refused(place.ann, "push", "-m", "ann", says="pull --merge, then push again", before=_sending(late))
    place.ann.ok("pull", "--merge")
    place.ann.ok("push", "-m", "ann")
    found = place.ann.files()["page.txt"].decode()
    assert found == PAGE.replace("one", "one, by ann") + "bob\n" * (push.PULLS + 1)
    bob.ok("pull")
    assert bob.files() == place.ann.files()


@row("server_misbehaved", "pull")
def _the_server_has_another_text(place: Place) -> None:
    bob = _two_with_a_page(place)
    place.write(place.ann, "page.txt", PAGE.replace("one", "one, by ann"))

    def mixed(transport: BranchTransport, batch: UpdateBatch) -> UpdateAnswers:
        found = TRUE_WAY(transport, batch)
        answers = [msgspec.structs.replace(answer, digest="ab" * 32) for answer in found.answers]
        return msgspec.structs.replace(found, answers=answers)

    refused(place.ann, "push", "-m", "ann", says="pull --merge", before=_sending(mixed))
    place.ann.ok("pull", "--merge")
    place.ann.ok("push", "-m", "ann")
    bob.ok("pull")
    assert bob.files() == place.ann.files() == {"page.txt": PAGE.replace("one", "one, by ann").encode()}


@row("client", "resolve")
def _versions_that_are_not_as_they_were(place: Place) -> None:
    bob, copy = _conflict(place)
    edits = f"cp $LOCAL $MERGED; echo six >> {bob.folder / copy}"
    refused(bob, "resolve", "page.txt", "--tool", edits, says="resolve page.txt again")
    place.write(bob, copy, b"\0bob")
    refused(bob, "resolve", "page.txt", "--tool", "true", says="resolve page.txt --mine or --theirs")
    bob.ok("resolve", "page.txt", "--mine")
    assert bob.files() == {"page.txt": b"\0bob"}
    bob.ok("push", "-m", "resolved")


@row("usage", "resolve")
def _two_conflicts_of_one_path(place: Place) -> None:
    bob, first = _conflict(place)
    place.write(place.ann, "page.txt", PAGE.replace("three", "ann again"))
    place.ann.ok("push", "-m", "again")
    place.write(bob, "page.txt", PAGE.replace("three", "bob again"))
    bob.conflicting("pull", "--merge")
    said = refused(bob, "resolve", "page.txt", "--mine", says="resolve page.sync-conflict-").err
    copies = said.partition("svc resolve ")[2].strip().split(" or ")
    assert first in copies
    for copy in copies:
        bob.ok("resolve", copy, "--mine")
    assert bob.ok("conflicts", "--json", "path").json() == []
    assert PAGE.replace("three", "ann again").encode() in bob.trash()
    bob.ok("push", "-m", "resolved")


@row("not_found", "conflicts")
def _a_path_without_a_conflict(place: Place) -> None:
    bob, _ = _conflict(place)
    refused(bob, "resolve", "pag.txt", "--mine", says="conflicts")
    (known,) = bob.run("conflicts", "--json", "path").json()
    bob.ok("resolve", known["path"], "--mine")
    assert bob.ok("conflicts", "--json", "path").json() == []


@row("conflict", "show")
def _a_seal_that_others_wrote_over(place: Place) -> None:
    _two_with_a_page(place)
    for word in ("3", "III"):
        old = place.ann.files()["page.txt"].decode().splitlines()
        place.write(place.ann, "page.txt", "\n".join([*old[:2], word, *old[3:], ""]))
        place.ann.ok("push", "-m", word)
    middle = place.ann.ok("log", "--json", "id").json()[1]["id"]
    said = refused(place.ann, "revert", middle, says="show").err
    shown = place.ann.ok("show", said.rpartition("svc show ")[2].split()[0]).out
    assert "-three\n+3\n" in shown
    place.write(place.ann, "page.txt", PAGE)
    place.ann.ok("push", "-m", "by hand")
