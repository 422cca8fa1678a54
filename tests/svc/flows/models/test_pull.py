"""A model is a repository: pushed, pulled, killed, pulled again, and its fine-tune moves little."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from localstore.models.names import parse
from localstore.models.store import Models
from svc.flows.models.fetching import PullStep
from svc.flows.models.pull import pull
from svc.flows.place.where import Where
from tests.llm import tiny
from tests.llm.conftest import Kept
from tests.llm.test_api import SENTENCE, asked
from tests.svc.conftest import Svc
from tests.svc.flows.test_chunks_from_anywhere import counted, total
from tests.svc.flows.test_large_files import made, pushed

LAYERS = 14  # of a model above the cap of one blob, so that it is chunks


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Models:
    monkeypatch.setenv("SVC_LLM_HOME", str(tmp_path / "llm"))
    return Models(tmp_path / "llm")


@pytest.fixture
def weights(alice: Svc, cache: Models) -> str:
    """OWNER/NAME of a repository with two large models of nearly the same bytes, and a small one."""
    full = made(alice, "model")
    tiny.write(Path("base-f16.gguf"), layers=LAYERS, seed=1)
    tiny.write(Path("tuned-f16.gguf"), layers=LAYERS, seed=1, tuned=2)
    Path("small").mkdir()
    tiny.write(Path("small/say-f16.gguf"))
    Path("small/mmproj-say.gguf").write_bytes(tiny.projector())
    tiny.write_shards(Path("small"), 2, "loop")
    Path(".svc.yaml").write_text("kind: model\ndefault_model: say-f16\n")
    pushed(alice)
    return full


def test_a_pushed_model_is_pulled_killed_pulled_again_and_generates(
    alice: Svc, weights: str, cache: Models, tmp_path: Path
) -> None:
    figures = tmp_path / "bytes"
    base = Path("base-f16.gguf").read_bytes()
    done = counted(figures, 8 << 20, "llm", "pull", f"{weights}:base-f16")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert alice("llm", "list", "--json", "name").out.strip() == "[]"
    done = counted(figures, 1 << 40, "llm", "pull", f"{weights}:base-f16")
    assert done.returncode == 0, done.stderr
    assert total(figures) < 1.06 * len(base)
    installed = cache.find(parse(f"{weights}:base-f16"))
    assert cache.blob(installed.record.model).read_bytes() == base
    assert installed.record.source is not None
    assert installed.record.source.path == "base-f16.gguf"

    figures.unlink()
    done = counted(figures, 1 << 40, "llm", "pull", f"{weights}:tuned-f16", "--as", "tuned")
    assert done.returncode == 0, done.stderr
    tuned = cache.find(parse("tuned"))
    assert cache.blob(tuned.record.model).read_bytes() == Path("tuned-f16.gguf").read_bytes()
    assert total(figures) < 0.15 * len(base), "the first of its layers alone differs"

    again = alice("llm", "pull", f"{weights}:base-f16")
    assert (again.code, "is up to date" in again.err) == (0, True)
    server = Kept(tmp_path / "llm")
    try:
        body = {"model": "tuned", "prompt": "Hi", "stream": False}
        assert server.talk.post("/api/generate", body)["response"] == SENTENCE
    finally:
        server.close()


def test_a_clone_takes_the_chunks_of_models_of_this_machine(
    alice: Svc, weights: str, cache: Models, tmp_path: Path
) -> None:
    assert alice("llm", "pull", str(Path("base-f16.gguf").absolute()), "--as", "mine").code == 0
    figures, target = tmp_path / "bytes", tmp_path / "clone"
    done = counted(figures, 1 << 40, "repo", "clone", weights, str(target))
    assert done.returncode == 0, done.stderr
    for name in ("base-f16.gguf", "tuned-f16.gguf"):
        assert (target / name).read_bytes() == Path(name).read_bytes()
    assert total(figures) < 0.35 * Path("base-f16.gguf").stat().st_size, "one layer, and the small files"

    steps: list[PullStep] = []
    pull(Where(os.environ, Path("/")), cache, f"{weights}:tuned-f16", None, steps.append)
    known = {step.known for step in steps if step.total and step.completed < step.total}
    size = Path("tuned-f16.gguf").stat().st_size
    assert max(known) > 0.85 * size, "the first of its layers alone differs"
    assert max(known) < size


def test_the_default_its_projector_and_shards_come_by_their_names(
    alice: Svc, weights: str, cache: Models
) -> None:
    told = alice("llm", "pull", weights, "--json", "name,how")
    assert json.loads(told.out) == {"name": f"{weights}:latest", "how": "fetched"}
    assert cache.find(parse(weights)).projector is not None
    assert alice("llm", "pull", f"{weights}:loop").code == 0
    assert len(cache.find(parse(f"{weights}:loop")).record.shards) == 1
    assert alice("llm", "cp", weights, "mine").code == 0
    assert alice("llm", "rm", weights, "--yes").code == 0
    assert cache.find(parse("mine")).projector is not None
    wrong = alice("llm", "pull", f"{weights}:nope")
    assert (wrong.code, "has no model 'nope'; it has" in wrong.err) == (1, True)
    wrong = alice("llm", "pull", f"{weights}x")
    assert (wrong.code, "does not exist or is hidden" in wrong.err) == (1, True)
    wrong = alice("llm", "pull", weights, "--projector", "small/mmproj-say.gguf")
    assert (wrong.code, "--projector goes with a file" in wrong.err) == (2, True)


def test_a_name_stays_its_repository_s(alice: Svc, weights: str, cache: Models) -> None:
    assert alice("llm", "pull", weights).code == 0
    installed = cache.find(parse(weights))
    assert installed.record.source is not None
    other = "0" * 32
    source = msgspec.structs.replace(installed.record.source, repo_id=other)
    cache.put(parse(weights), msgspec.structs.replace(installed.record, source=source))
    refused = alice("llm", "pull", weights)
    assert (refused.code, f"was pulled from another repository ({other}" in refused.err) == (2, True)
    assert alice("llm", "pull", weights, "--as", "other").code == 0
    assert alice("llm", "rm", weights, "--yes").code == 0
    assert alice("llm", "pull", weights).code == 0


def test_a_pack_names_models_of_other_repositories(alice: Svc, weights: str, cache: Models) -> None:
    owner = weights.partition("/")[0]
    assert alice("repo", "create", "pack", "--kind", "modelpack").code == 0
    folder = Path("pack")
    folder.mkdir()
    (folder / ".svc.yaml").write_text(f"kind: modelpack\nmodels: [{weights}:say-f16]\n")
    with contextlib.chdir(folder):
        assert alice("repo", "init", f"{owner}/pack").code == 0
        pushed(alice)
    assert alice("llm", "pull", f"{owner}/pack").code == 0
    assert cache.find(parse(f"{owner}/pack")).about.header.text("general.name") == "Tiny"
    assert alice("llm", "pull", f"{owner}/pack:say-f16").code == 0


def test_a_manifest_chooses_no_server(alice: Svc, weights: str, cache: Models) -> None:
    owner = weights.partition("/")[0]
    assert alice("repo", "create", "far", "--kind", "modelpack").code == 0
    folder = Path("far")
    folder.mkdir()
    (folder / ".svc.yaml").write_text("kind: modelpack\nmodels: [other.example/bob/model:q4]\n")
    with contextlib.chdir(folder):
        assert alice("repo", "init", f"{owner}/far").code == 0
        pushed(alice)
    refused = alice("llm", "pull", f"{owner}/far")
    assert (refused.code, "a model of another server" in refused.err) == (1, True), refused.err
    assert "other.example/bob/model:q4" in refused.err


@pytest.fixture
def server(alice: Svc, weights: str, tmp_path: Path) -> Iterator[Kept]:
    found = Kept(tmp_path / "llm", SVC_HOME=os.environ["SVC_HOME"])
    yield found
    found.close()


def test_api_pull_tells_its_progress_and_the_model_is_listed(server: Kept, weights: str) -> None:
    lines = list(server.talk.stream("/api/pull", {"model": f"{weights}:base-f16"}))
    assert lines[0] == {"status": "pulling manifest"}
    under_way = [line for line in lines if "total" in line]
    completed = [line.get("completed", 0) for line in under_way]
    assert len(set(completed)) >= 2
    assert completed == sorted(completed)
    assert completed[-1] == under_way[-1]["total"] == Path("base-f16.gguf").stat().st_size
    assert [line["status"] for line in lines[-3:]] == [
        "verifying sha256 digest", "writing manifest", "success",
    ]  # fmt: skip
    names = [one["name"] for one in server.talk.get("/api/tags")["models"]]
    assert names == [f"{weights}:base-f16"]
    whole = server.talk.post("/api/pull", {"name": weights, "stream": False})
    assert whole == {"status": "success"}
    body = {"model": weights, "prompt": "Hi", "stream": False}
    assert server.talk.post("/api/generate", body)["response"] == SENTENCE
    status, answer = asked(server, "POST", "/api/pull", {"model": f"{weights}:nope", "stream": False})
    assert (status, "has no model 'nope'" in answer["error"]) == (500, True)
    assert asked(server, "POST", "/api/pull", {"model": "../x"})[0] == 400
    assert asked(server, "POST", "/api/pull", {})[0] == 400
