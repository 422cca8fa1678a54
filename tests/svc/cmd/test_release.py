"""Releases from the command line: checked before anything is sent, verified before a file has its name."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from localstore.core.errors import ServerUnreachable
from localstore.core.model.limits import ASSET_FILE, MIB, NOTES_BYTES
from svc.api.release import ReleaseCalls
from svc.flows.assets import upload as assets_upload
from svc.flows.assets.local import media_of
from tests.svc.conftest import Svc

DATA = secrets.token_bytes(3 * MIB)


@pytest.fixture
def linked(alice: Svc) -> Svc:
    """alice in a linked folder with one seal, and a file beside it."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/app").code == 0
    Path("a.txt").write_text("one\n")
    assert alice("push", "-m", "First").code == 0
    Path("app.bin").write_bytes(DATA)
    return alice


@pytest.fixture
def released(linked: Svc) -> Svc:
    """With a release v1 that has the file."""
    assert linked("repo", "release", "create", "v1", "app.bin").code == 0
    return linked


def seals(svc: Svc) -> list[str]:
    return [one["id"] for one in json.loads(svc("log", "--json", "id").out)]


def shown(svc: Svc, version: str = "v1") -> Any:
    return json.loads(svc("repo", "release", "view", version, "--json", "seal_id,notes,assets").out)


def part() -> Path:
    return Path(f".svc-{blake3(DATA).hexdigest()[:16]}.tmp")


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From where each download was asked for."""
    found: list[int] = []
    real = ReleaseCalls.download

    @contextmanager
    def noted(self: ReleaseCalls, repo_id: str, version: str, name: str, start: int) -> Iterator[Any]:
        found.append(start)
        with real(self, repo_id, version, name, start) as told:
            yield told

    monkeypatch.setattr(ReleaseCalls, "download", noted)
    return found


def test_it_names_the_seal_that_was_meant(linked: Svc) -> None:
    (first,) = seals(linked)
    Path("a.txt").write_text("two\n")
    assert linked("push", "-m", "Second").code == 0
    second = seals(linked)[0]
    for version, words, seal in (
        ("v1", (), second),
        ("v2", ("--seal", first[:8]), first),
        ("v3", ("--commit", first), first),
        ("v4", ("--from", "main"), second),
    ):
        made = linked("repo", "release", "create", version, *words)
        assert (made.code, made.out) == (0, f"{version}\n"), made
        assert shown(linked, version)["seal_id"] == seal
    assert linked("repo", "release", "create", "v5", "--seal", "main").code == 1
    assert linked("repo", "release", "create", "v5", "--seal", "f" * 64).code == 1
    both = linked("repo", "release", "create", "v5", "--seal", first, "--from", "main")
    assert both.code == 2
    listed = json.loads(linked("repo", "release", "list", "--json", "version").out)
    assert [one["version"] for one in listed] == ["v4", "v3", "v2", "v1"]


def test_nothing_is_sent_before_all_arguments_are_checked(linked: Svc) -> None:
    Path("sub").mkdir()
    Path("sub/APP.bin").write_bytes(b"other")
    Path("a\u202eb").write_bytes(b"x")
    with Path("large").open("wb") as file:
        file.truncate(ASSET_FILE + 1)
    for words in (
        ("no such file",),
        ("sub",),
        ("large",),
        ("a\u202eb",),
        ("app.bin", "sub/APP.bin"),
        ("--notes-file", "no such file"),
        ("--notes", "x", "--notes-file", "a.txt"),
        ("--notes", "x" * (NOTES_BYTES + 1)),
        ("--notes-file", "app.bin"),
    ):
        told = linked("repo", "release", "create", "v1", *words)
        assert (told.code, told.out) == (2, ""), (words, told)
    assert linked("repo", "release", "create", "../x").code == 2
    assert linked("repo", "release", "list").out == ""


def test_notes_come_from_a_file_and_are_rewritten(released: Svc) -> None:
    Path("notes.md").write_text("# Größer\n")
    assert released("repo", "release", "edit", "v1", "--notes-file", "notes.md").code == 0
    assert shown(released)["notes"] == "# Größer\n"
    assert "\nnotes\t# Größer\\x0a\n" in released("repo", "release", "view", "v1").out
    assert json.loads(released("repo", "release", "view", "v1", "--json").out)["notes"] == "# Größer\n"
    assert released("repo", "release", "edit", "v1").code == 2
    told = released("repo", "release", "edit", "v9", "--notes", "x")
    assert (told.code, "has no release v9" in told.err) == (1, True)


def test_a_file_is_sent_once_and_replaced_only_on_demand(released: Svc) -> None:
    sent = released("repo", "release", "upload", "v1", "app.bin", "--json", "name,uploaded")
    assert json.loads(sent.out) == [{"name": "app.bin", "uploaded": False}]
    Path("app.bin").write_bytes(b"other")
    told = released("repo", "release", "upload", "v1", "app.bin")
    assert (told.code, "already has an asset app.bin" in told.err) == (1, True)
    assert shown(released)["assets"][0]["size"] == len(DATA)
    assert released("repo", "release", "upload", "v1", "app.bin", "--clobber").code == 0
    (asset,) = shown(released)["assets"]
    assert (asset["size"], asset["blake3"]) == (5, blake3(b"other").hexdigest())
    assert released("repo", "release", "upload", "v9", "app.bin").code == 1


def test_a_replacement_that_is_cut_leaves_the_old_asset(
    released: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("app.bin").write_bytes(b"other")
    before = shown(released)["assets"]
    real = assets_upload._pieces

    def cut(*given: Any) -> Iterator[bytes]:
        raise ServerUnreachable("the network is gone")
        yield from real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(assets_upload, "_pieces", cut)
        assert released("repo", "release", "upload", "v1", "app.bin", "--clobber").code == 1
    assert shown(released)["assets"] == before
    Path("app.bin").write_bytes(DATA[:-1])
    assert released("repo", "release", "upload", "v1", "app.bin", "--clobber").code == 0
    assert shown(released)["assets"][0]["size"] == len(DATA) - 1
    again = released("repo", "release", "upload", "v1", "app.bin", "--clobber", "--json", "uploaded")
    assert json.loads(again.out) == [{"uploaded": False}]


@pytest.mark.parametrize("ending", [ServerUnreachable, KeyboardInterrupt])
def test_a_release_without_its_files(
    linked: Svc, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    def cut(*given: Any) -> bytes:
        raise ending

    with monkeypatch.context() as patch:
        patch.setattr(assets_upload, "_pieces", cut)
        answer = linked("repo", "release", "create", "v1", "app.bin")
    assert answer.code == (130 if ending is KeyboardInterrupt else 1)
    command = "svc repo release upload v1 app.bin"
    assert f"release v1 is there without all of its files; to go on: {command}\n" in answer.err
    assert shown(linked)["assets"] == []
    assert linked(*command.split()[1:]).code == 0
    assert len(shown(linked)["assets"]) == 1


def test_an_interrupted_download_goes_on(released: Svc, starts: list[int]) -> None:
    Path("app.bin").unlink()
    part().write_bytes(DATA[: 2 * MIB])
    done = released("repo", "release", "download", "v1", "--json", "path,downloaded")
    assert json.loads(done.out) == [{"path": "app.bin", "downloaded": True}]
    assert Path("app.bin").read_bytes() == DATA
    assert starts == [2 * MIB]
    again = released("repo", "release", "download", "v1", "--json", "path,downloaded")
    assert json.loads(again.out) == [{"path": "app.bin", "downloaded": False}]
    assert starts == [2 * MIB]
    assert not part().exists()


def test_a_part_that_is_none_is_received_anew(released: Svc, starts: list[int]) -> None:
    for there, asked in (
        (b"x" * 100, [100, 0]),
        (bytes(len(DATA)), [0]),
        (DATA + b"more", [0]),
        (DATA, []),
        (b"", [0]),
    ):
        starts.clear()
        Path("app.bin").unlink()
        part().write_bytes(there)
        assert released("repo", "release", "download", "v1").code == 0
        assert Path("app.bin").read_bytes() == DATA
        assert starts == asked
        assert not part().exists()


def test_bytes_that_are_others_get_no_name(released: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("app.bin").unlink()

    @contextmanager
    def lying(_: ReleaseCalls, *__: Any) -> Iterator[Any]:
        yield 0, iter([bytes(len(DATA))])

    monkeypatch.setattr(ReleaseCalls, "download", lying)
    told = released("repo", "release", "download", "v1")
    assert (told.code, "are not those that the release names" in told.err) == (1, True)
    assert not Path("app.bin").exists()
    assert not part().exists()


def test_what_lies_in_the_folder_stays_unless_it_may_go(released: Svc) -> None:
    Path("b.txt").write_text("beside")
    assert released("repo", "release", "upload", "v1", "b.txt").code == 0
    Path("b.txt").unlink()
    Path("app.bin").write_text("mine")
    told = released("repo", "release", "download", "v1")
    assert (told.code, "app.bin is there with other content" in told.err) == (1, True)
    assert Path("app.bin").read_text() == "mine"
    assert not Path("b.txt").exists(), "refused before the first file"
    assert released("repo", "release", "download", "v1", "-p", "b.*").code == 0
    assert released("repo", "release", "download", "v1", "--clobber").code == 0
    assert Path("app.bin").read_bytes() == DATA
    Path("app.bin").unlink()
    Path("elsewhere").write_text("mine")
    Path("app.bin").symlink_to("elsewhere")
    assert released("repo", "release", "download", "v1", "--clobber").code == 1
    assert Path("elsewhere").read_text() == "mine"
    part().symlink_to("elsewhere")
    assert released("repo", "release", "download", "v1", "-D", "new/folder").code == 0
    assert Path("new/folder/app.bin").read_bytes() == DATA
    Path("app.bin").unlink()
    assert released("repo", "release", "download", "v1").code == 1
    assert Path("elsewhere").read_text() == "mine"


def test_deleting_asks_first(released: Svc) -> None:
    for words in (("delete", "v1"), ("delete-asset", "v1", "app.bin")):
        assert released("repo", "release", *words).code == 2
    assert len(shown(released)["assets"]) == 1
    assert released("repo", "release", "delete-asset", "v1", "none", "--yes").code == 1
    assert released("repo", "release", "delete-asset", "v1", "app.bin", "--yes").out == "app.bin\n"
    assert shown(released)["assets"] == []
    assert released("repo", "release", "download", "v1").code == 1
    assert released("repo", "release", "delete", "v1", "--yes").out == "v1\n"
    assert released("repo", "release", "delete", "v1", "--yes").code == 1
    assert released("repo", "release", "view").code == 1


def test_anybody_downloads_from_a_public_repository(released: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{os.environ['TEST_HANDLE']}/app"
    assert released("repo", "visibility", "public", "-R", name, "--yes").code == 0
    monkeypatch.setenv("SVC_HOME", str(Path("../nobody").resolve()))
    Path("../stranger").mkdir()
    monkeypatch.chdir("../stranger")
    done = released("repo", "release", "download", "-R", name)
    assert done.code == 0, done
    assert Path("app.bin").read_bytes() == DATA
    assert released("repo", "release", "delete", "v1", "-R", name, "--yes").code == 4


@pytest.mark.parametrize(
    ("name", "media"),
    [
        ("a.zip", "application/zip"),
        ("a.tar.gz", "application/gzip"),
        ("a.txt", "text/plain"),
        ("a", "application/octet-stream"),
        ("a.tar.Z", "application/octet-stream"),
    ],
)
def test_a_name_suggests_a_media_type(name: str, media: str) -> None:
    assert media_of(name) == media


def test_a_release_is_of_the_default_branch_unless_another_is_named(
    linked: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a folder on a branch that is not merged; the sentence names seal and branch."""
    head = {"main": linked("log", "-n", "1", "--json", "id", "--jq", ".[0].id").out.strip()}
    assert linked("repo", "branch", "topic").code == 0
    assert linked("switch", "topic").code == 0
    Path("only-topic.txt").write_text("not merged\n")
    head["topic"] = linked("push", "-m", "Topic").out.strip()
    for version, words, branch in (
        ("v1", (), "main"),
        ("v2", ("--from", "topic"), "topic"),
        ("v3", ("--target", "main"), "main"),
    ):
        made = linked("repo", "release", "create", version, *words)
        assert made.code == 0, made
        assert f"Created release {version} of {head[branch][:12]} ({branch})" in made.err
        seal = linked("repo", "release", "view", version, "--json", "seal_id", "--jq", ".seal_id").out.strip()
        assert seal == head[branch]
