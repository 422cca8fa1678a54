"""The cache: one copy on the disk, verified names, and files that somebody changes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.core.errors import UsageError
from localstore.core.times import rfc3339_now
from localstore.errors import DiskError
from localstore.folder.lock import AlreadyLocked, Holder, hold_lock
from localstore.models import gguf, intake, names, server
from localstore.models.errors import BadModel, ModelChanged, ModelMissing
from localstore.models.intake import take_in
from localstore.models.leases import lease, list_leases
from localstore.models.store import Models, Record
from localstore.progress import silent
from svc.flows.models.local import pull_file
from tests.llm import tiny


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path / "llm")


def pull(models: Models, file: Path, name: str) -> str:
    taken = take_in(models, file)
    models.put(names.parse(name), Record(model=taken.digest, modified_at=rfc3339_now()))
    return taken.digest


def test_a_file_of_the_same_disk_takes_no_space_twice(models: Models, tmp_path: Path) -> None:
    file = tiny.write(tmp_path / "tiny.gguf")
    taken = take_in(models, file)
    assert taken.about.how in ("reflink", "link")
    if taken.about.how == "link":
        assert models.blob(taken.digest).stat().st_ino == file.stat().st_ino
    assert models.blob(taken.digest).read_bytes() == file.read_bytes()


def test_where_nothing_can_be_shared_the_file_is_copied(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tiny.write(tmp_path / "tiny.gguf")
    monkeypatch.setattr(intake, "_CLONE", 0)

    def refused(*_: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refused)
    taken = take_in(models, file)
    assert taken.about.how == "copy"
    file.write_bytes(b"changed")
    assert models.intact(taken.digest, taken.about)


def test_a_full_disk_keeps_nothing_and_the_same_pull_goes_on_when_there_is_room(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tiny.write(tmp_path / "tiny.gguf")
    monkeypatch.setattr(intake, "_CLONE", 0)
    monkeypatch.setattr(os, "link", lambda *_: refuse_links())
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, room[1]))
    try:
        with pytest.raises(DiskError, match=r"cannot be written to .*File too large; free some"):
            take_in(models, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
    assert list(models.blobs.iterdir()) == []
    assert take_in(models, file).about.how == "copy"


def refuse_links() -> None:
    raise PermissionError(1, "no links here")


def test_a_model_of_several_files_is_one_and_frees_all_of_them(models: Models, tmp_path: Path) -> None:
    files = tiny.write_shards(tmp_path, 3)
    pulled = pull_file(models, files[2], "many", None, silent).installed
    assert pulled.size == sum(file.stat().st_size for file in files)
    assert pulled.parameters == read(files[0]) + read(files[1]) + read(files[2])
    first, _ = models.files_to_load(pulled)
    assert [path.read_bytes() for path in sorted(first.parent.iterdir())] == tiny.shards(3)
    models.remove(pulled.name)
    assert list(models.blobs.iterdir()) == []
    assert list((models.root / "shards").iterdir()) == []
    files[1].unlink()
    with pytest.raises(BadModel, match=r"say-00002-of-00003.gguf is missing: the model has 3 files"):
        pull_file(models, files[0], "many", None, silent)
    alone = files[0].rename(tmp_path / "alone.gguf")
    with pytest.raises(
        BadModel, match=r"alone.gguf is shard 1 of 3 of a model, and its name does not say so"
    ):
        pull_file(models, alone, None, None, silent)
    tiny.write_shards(tmp_path, 3)
    files[1].write_bytes(files[2].read_bytes())
    with pytest.raises(BadModel, match="is shard 3 of 3"):
        pull_file(models, files[0], None, None, silent)


def read(file: Path) -> int:
    with file.open("rb") as opened:
        return gguf.read(opened, file.stat().st_size).parameters


def test_the_same_file_comes_once_and_goes_with_its_last_name(models: Models, tmp_path: Path) -> None:
    file = tiny.write(tmp_path / "tiny.gguf")
    digest = pull(models, file, "one")
    assert not take_in(models, file).new
    assert pull(models, file, "alice/two:q4") == digest
    models.remove(names.parse("one"))
    assert models.blob(digest).exists()
    models.remove(names.parse("alice/two:q4"))
    assert not models.blob(digest).exists()
    assert models.all() == []
    assert file.exists()
    with pytest.raises(ModelMissing):
        models.find(names.parse("one"))


def test_a_linked_file_that_was_written_in_place_is_not_loaded(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_CLONE", 0)
    file = tiny.write(tmp_path / "tiny.gguf")
    pull(models, file, "tiny")
    found = models.find(names.parse("tiny"))
    models.files_to_load(found)
    with file.open("r+b") as changed:
        changed.seek(-1, os.SEEK_END)
        changed.write(b"\1")
    os.utime(file, ns=(1, 1))
    with pytest.raises(ModelChanged, match="svc llm pull"):
        models.files_to_load(found)
    pull(models, file, "tiny")
    models.files_to_load(models.find(names.parse("tiny")))


def test_a_file_that_is_replaced_by_its_editor_leaves_the_model_as_it_was(
    models: Models, tmp_path: Path
) -> None:
    file = tiny.write(tmp_path / "tiny.gguf")
    pull(models, file, "tiny")
    tiny.write(tmp_path / "new.gguf", pad=1).replace(file)
    models.files_to_load(models.find(names.parse("tiny")))


NO_MODELS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "a folder": lambda path: path.mkdir(),
    "a pipe": lambda path: os.mkfifo(path),
    "text": lambda path: path.write_text("no model"),
    "half": lambda path: path.write_bytes(tiny.model()[: 1 << 20]),
}


@pytest.mark.parametrize("what", NO_MODELS)
def test_what_is_no_model_leaves_nothing(models: Models, tmp_path: Path, what: str) -> None:
    NO_MODELS[what](tmp_path / "x.gguf")
    with pytest.raises(BadModel):
        take_in(models, tmp_path / "x.gguf")
    assert not models.blobs.exists() or list(models.blobs.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "short", "whole"),
    [
        ("tiny", "tiny", "tiny:latest"),
        ("alice/qwen:q4_k_m", "alice/qwen:q4_k_m", "alice/qwen:q4_k_m"),
        ("localhost:8080/alice/qwen", "localhost:8080/alice/qwen", "localhost:8080/alice/qwen:latest"),
        ("hf.co/a/b:Q8_0", "hf.co/a/b:Q8_0", "hf.co/a/b:Q8_0"),
    ],
)
def test_names(typed: str, short: str, whole: str) -> None:
    name = names.parse(typed)
    assert (name.short, str(name)) == (short, whole)
    assert names.ModelName.at(name.path) == name


@pytest.mark.parametrize(
    "typed", ["", ":", "a:", "../x", "a//b", "/a", "a/b/c/d", "a b", "_", ".a", "a\x1b[2J", "x" * 600, "-a"]
)
def test_what_is_no_name_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="not the name of a model"):
        names.parse(typed)


def test_a_damaged_record_is_no_model(models: Models, tmp_path: Path) -> None:
    pull(models, tiny.write(tmp_path / "tiny.gguf"), "tiny")
    (record,) = [path for path in (models.root / "names").rglob("*") if path.is_file()]
    record.write_bytes(b"{")
    assert models.all() == []
    (record.parent / "../../x").write_bytes(b"{}")
    assert models.all() == []


def test_a_lease_ends_with_its_holder(tmp_path: Path) -> None:
    with lease(tmp_path, "app"):
        assert [name.partition("-")[0] for name in list_leases(tmp_path)] == ["app"]
    assert list_leases(tmp_path) == []
    child = os.fork()
    if child == 0:
        with lease(tmp_path, "killed"):
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert len(list((tmp_path / "leases").iterdir())) == 1
    assert list_leases(tmp_path) == []
    assert list((tmp_path / "leases").iterdir()) == []


def test_a_record_of_a_blob_never_comes_before_its_bytes(models: Models, tmp_path: Path) -> None:
    file = tiny.write(tmp_path / "tiny.gguf")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (models.blob(digest) / "in the way").mkdir(parents=True)
    with pytest.raises(DiskError, match="directory"):
        take_in(models, file)
    assert models.about(digest) is None


def test_a_server_that_ended_does_not_run_also_while_another_process_looks(tmp_path: Path) -> None:
    server.write(tmp_path, server.Running(kind="embedded", pid=1, port=1))
    (tmp_path / server.LOCK).touch()
    with (tmp_path / server.LOCK).open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        assert server.running(tmp_path) is None
    with hold_lock(tmp_path / server.LOCK):
        assert server.running(tmp_path) is not None


def test_an_error_of_another_lock_leaves_the_lock_of_the_cache(models: Models) -> None:
    with pytest.raises(AlreadyLocked, match="svc push"), models.hold_lock():
        raise AlreadyLocked(Holder(command="svc push"))
    with models.hold_lock():
        pass
