"""Ways out of errors about folders, branches and names."""

from __future__ import annotations

import pytest

from localstore.core.errors import Forbidden, SvcError
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.live import ClockReused
from localstore.core.model.ref import StaleHead
from localstore.core.model.seal import Prepared, PrepareRequest
from localstore.errors import NotSealed
from localstore.home import Home
from localstore.live.sheets import OpenSheet
from localstore.sync.owning import open_copy
from localstore.sync.sealing import seal
from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row, wait_for_a_code
from tests.campaign.world import Machine
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import Place as ModelPlace


@row("not_linked", "repo init")
def _a_folder_without_a_link(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob", clone=False)
    refused(bob, "pull", says="repo init")
    bob.ok("repo", "init", place.repo)
    bob.ok("pull")
    assert bob.files() == place.ann.files()


@row("not_found", "repo create")
def _a_repository_that_is_not_made_yet(place: Place) -> None:
    place.ann.folder.joinpath(".svc").rename(place.ann.folder.parent / "unlinked")
    refused(place.ann, "repo", "init", f"{place.handle}/fresh", says="repo create fresh")
    place.ann.ok("repo", "create", "fresh")
    place.ann.ok("repo", "init", f"{place.handle}/fresh")
    first_push(place)


@row("not_found", "grep")
def _a_path_where_grep_takes_a_seal(place: Place) -> None:
    first_push(place)
    (place.ann.folder / "a.txt").unlink()
    place.ann.ok("push", "-m", "second")
    refused(place.ann, "grep", "one", "a.txt", says="grep PATTERN -- a.txt")
    (place.ann.folder / "a.txt").write_text("one\n")
    assert place.ann.ok("grep", "one", "--", "a.txt").out == "a.txt:1:one\n"


@row("link_damaged", "repo init")
def _a_link_that_cannot_be_read(place: Place) -> None:
    first_push(place)
    (place.ann.folder / ".svc/repo.json").write_bytes(b"{")
    refused(place.ann, "pull", says="repo init")
    (place.ann.folder / ".svc").rename(place.base / "away")
    place.ann.ok("repo", "init", place.repo)
    place.ann.ok("pull")


@row("folder_not_empty", "repo init")
def _a_clone_over_files(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob", clone=False)
    place.write(bob, "mine.txt", "mine\n")
    refused(bob, "repo", "clone", place.repo, str(bob.folder), says="repo init", where=place.base)
    bob.ok("repo", "init", place.repo)
    bob.ok("pull", "--merge")
    assert bob.files() == place.ann.files() | {"mine.txt": b"mine\n"}


@row("usage", "inbox")
def _a_row_of_the_inbox_that_is_misspelled(place: Place) -> None:
    first_push(place)
    place.ann.ok("issue", "create", "-t", "x")
    refused(place.ann, "inbox", "alice", says="inbox --help")
    refused(place.ann, "inbox", "done", says="inbox done ITEM")
    refused(place.ann, "inbox", "done", "#", says="inbox")
    place.ann.ok("inbox", "--help")
    place.ann.ok("inbox")
    place.ann.ok("inbox", "done", "--all")


@row("not_found", "inbox")
def _a_row_that_the_inbox_lacks(place: Place) -> None:
    first_push(place)
    refused(place.ann, "inbox", "done", "#7", says="inbox --all")
    place.ann.ok("inbox", "--all")


@row("usage", "repo init", "repo clone", "repo branch")
def _which_repository(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob", clone=False)
    refused(bob, "log", says="repo init")
    refused(bob, "repo", "init", says="repo init")
    refused(bob, "repo", "clone", says="repo clone")
    refused(place.ann, "repo", "branch", "--from", "main", says="repo branch NAME --from")
    place.ann.ok("repo", "branch", "side", "--from", "main")
    bob.ok("repo", "clone", place.repo, "copy")
    bob.ok("repo", "init", place.repo)
    bob.ok("log")


@row("not_found", "repo restore")
def _a_folder_whose_repository_was_deleted(place: Place) -> None:
    first_push(place)
    gone = place.ann.ok("repo", "delete", "--yes").out.strip()
    place.write(place.ann, "a.txt", "two\n")
    assert f"repo restore {gone}" in place.ann.ok("status").err
    for words in (["pull", "--merge"], ["push", "-m", "two"]):
        done = refused(place.ann, *words, says=f"repo restore {gone}")
        assert place.repo in done.err
    place.ann.ok("repo", "restore", gone)
    place.ann.ok("push", "-m", "two")


# --- pull and push


@row("unpulled_seal", "pull")
def _a_push_over_a_seal(place: Place) -> None:
    first_push(place)
    bob = place.machine("bob")
    place.write(place.ann, "a.txt", "one\nann\n")
    place.ann.ok("push", "-m", "second")
    place.write(bob, "c.txt", "bob\n")
    refused(bob, "push", "-m", "bob", says="pull")
    bob.ok("pull", "--merge")
    bob.ok("push", "-m", "bob")


def _models(place: Place) -> tuple[ModelPlace, ModelPlace]:
    relay = ModelRelay()
    ann, bob = ModelPlace(place.base, relay, "model-ann"), ModelPlace(place.base, relay, "model-bob")
    ann.write("b.bin", b"\0one")
    ann.push()
    bob.pull()
    return ann, bob


def _named(error: SvcError, command: str) -> None:
    assert f"svc {command}" in error.detail


@row("not_sealed", "pull")
def _somebody_seals_in_between(place: Place) -> None:
    ann, bob = _models(place)

    class Late(ModelTransport):
        def prepare(self, request: PrepareRequest) -> Prepared:
            bob.write("c.txt", "bob\n")
            bob.push()
            return super().prepare(request)

    ann.wrap = lambda _: Late(ann.relay, "main")
    ann.write("a.txt", "ann\n")
    with pytest.raises(NotSealed) as raised:
        ann.push()
    _named(raised.value, "pull")
    ann.wrap = lambda transport: transport
    ann.pull()
    ann.push()
    assert ann.relay.sealed_tree(ann.relay.branches["main"].head) == ann.files()


@row("stale_head", "pull")
def _the_head_moved(place: Place) -> None:
    ann, bob = _models(place)
    bob.write("c.txt", "bob\n")
    bob.push()
    with ann.device() as device, pytest.raises(StaleHead) as raised:
        seal(device, "late")
    _named(raised.value, "pull")
    ann.pull()
    with ann.device() as device:
        seal(device, "in time")


@row("clock_reused", "pull")
def _a_number_given_twice(place: Place) -> None:
    ann, _ = _models(place)
    branch = ann.relay.branches["main"]
    with ann.device() as device:
        replica = device.replica
    branch.settled[replica] = 9
    ann.write("a.txt", "two\n")
    with pytest.raises(ClockReused) as raised:
        ann.push()
    _named(raised.value, "pull --merge")
    ann.pull("merge")
    ann.push()
    assert b"two\n" in ann.relay.tree("main").values()


@row("repository_archived", "repo unarchive")
def _an_archived_repository(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "archive", "-R", place.repo, "--yes")
    place.write(place.ann, "a.txt", "two\n")
    refused(place.ann, "push", "-m", "second", says="repo unarchive -R")
    place.ann.ok("repo", "unarchive", "-R", place.repo)
    place.ann.ok("push", "-m", "second")


# --- not found


@row("not_found", "repo branch", "repo tag list", "log", "push")
def _a_name_nobody_knows(place: Place) -> None:
    refused(place.ann, "blame", "a.txt", "--ref", "main", says="push")
    first_push(place)
    place.ann.ok("repo", "branch", "side")
    place.ann.ok("repo", "tag", "create", "v1")
    wrong = refused(place.ann, "blame", "a.txt", "--ref", "nothing", says="repo tag list")
    assert "svc repo branch" in wrong.err
    assert "svc log" in wrong.err
    seal_id = place.ann.ok("log", "--json", "id").json()[0]["id"]
    for name in (*_names(place.ann, "repo", "branch"), *_names(place.ann, "repo", "tag", "list"), seal_id):
        place.ann.ok("blame", "a.txt", "--ref", name)


def _names(machine: Machine, *words: str) -> list[str]:
    return [one["name"] for one in machine.ok(*words, "--json", "name").json()]


@row("not_found", "status")
def _a_file_nobody_knows(place: Place) -> None:
    first_push(place)
    place.write(place.ann, "new.txt", "new\n")
    refused(place.ann, "blame", "new.txt", says="log --path")
    refused(place.ann, "diff", "nothing.txt", says="status")
    refused(place.ann, "restore", "new.txt", says="status")
    assert place.ann.ok("status", "--json", "new").json()["new"] == ["new.txt"]
    place.ann.ok("diff", "new.txt")
    place.ann.ok("push", "-m", "second")
    place.ann.ok("blame", "new.txt")


@row("not_found", "auth device list", "auth token list")
def _an_id_nobody_knows(place: Place) -> None:
    for noun, words in (("device", ()), ("token", ())):
        refused(place.ann, "auth", noun, "revoke", "zzzz", "--yes", *words, says=f"auth {noun} list")
        known = place.ann.ok("auth", noun, "list", "--json", "id").json()
        place.ann.ok("auth", noun, "revoke", known[-1]["id"], "--yes")
        place.ann.ok("login", "--new-key", "--yes", "--device-key", "--handle", f"{place.handle}-{noun}")


@row("not_found", "repo list")
def _a_deleted_repository(place: Place) -> None:
    place.ann.ok("repo", "delete", "-R", place.repo, "--yes")
    refused(place.ann, "repo", "restore", "zzzz", says="repo list --deleted")
    (gone,) = place.ann.ok("repo", "list", "--deleted", "--json", "id").json()
    place.ann.ok("repo", "restore", gone["id"])


@row("not_found", "login")
def _a_node_without_device_keys(place: Place) -> None:
    """Only the browser is left there, as `svc login` by itself."""
    bob = Machine(place.base, "bob", place.node)
    started = bob.begin("login")
    wait_for_a_code(place, started)
    started.kill()
    started.wait()
    place.node.rows("UPDATE device_code SET expires_at=0 WHERE state='pending'")


# --- live


@row("not_watched", "watch")
@row("not_watchable", "watch", "watch stop")
def _the_watcher_of_a_watched_folder(place: Place) -> None:
    first_push(place)
    refused(place.ann, "watch", "stop", says="watch")
    place.ann.ok("watch", "--detach")
    refused(place.ann, "watcher", "stop", says="watch stop")
    place.ann.ok("watch", "stop")
    place.ann.ok("watcher", "stop")
    place.ann.ok("watch", "--detach")
    place.ann.ok("watch", "stop", "--all")


@row("forbidden", "switch")
def _a_folder_that_shows_a_seal_takes_no_live_edits(place: Place) -> None:
    first_push(place)
    seal_id = place.ann.ok("log", "--json", "id", "--jq", ".[0].id").out.strip()

    def open_text() -> None:  # as the agent does for the app
        with open_copy(place.ann.folder, Home(place.ann.home), key=DeviceKey.generate(bytes(32))) as copy:
            OpenSheet(copy, "a.txt", "")

    place.ann.ok("switch", seal_id)
    with pytest.raises(Forbidden, match="svc switch main"):
        open_text()
    place.ann.ok("switch", "main")
    open_text()


# --- the watcher


@row("not_watchable", "status", "watcher stop")
def _a_second_watcher(place: Place) -> None:
    first_push(place)
    place.ann.ok("watcher", "start")
    place.ann.ok("status")
    place.ann.ok("watcher", "stop")
    place.ann.ok("watcher", "start")
    place.ann.ok("watcher", "stop")


# --- words that are not a command, or not enough


@row("usage", "log")
def _the_history_of_no_file(place: Place) -> None:
    first_push(place)
    refused(place.ann, "log", "--follow", says="log --follow PATH")
    place.ann.ok("log", "--follow", "a.txt")


@row("invalid", "log")
def _a_release_of_a_seal_that_is_not_here(place: Place) -> None:
    first_push(place)
    refused(place.ann, "repo", "release", "create", "v1", "--seal", "f" * 64, says="log")
    seal = place.ann.ok("log", "--json", "id", "--jq", ".[0].id").out.strip()
    place.ann.ok("repo", "release", "create", "v1", "--seal", seal)


# --- actions that wait


@row("client", "queue list")
@row("not_found", "queue list")
@row("usage", "queue list")
def _an_action_that_the_server_refuses(place: Place) -> None:
    first_push(place)
    for _ in range(2):
        place.ann.ok("label", "create", "bug", "--queue")
    ids = [one["id"] for one in place.ann.ok("queue", "list", "--json", "id").json()]
    refused(place.ann, "queue", "drop", ids[0][:4], says="queue list")
    place.node.kill()
    refused(place.ann, "queue", "retry", says="queue list")
    place.node.start()
    refused(place.ann, "queue", "retry", says="queue list")
    refused(place.ann, "queue", "drop", says="queue list")
    refused(place.ann, "queue", "drop", "ff", says="queue list")
    (left,) = place.ann.ok("queue", "list", "--json", "id,reason").json()
    place.ann.ok("queue", "drop", left["id"], "--yes")
    place.ann.ok("queue", "retry")
