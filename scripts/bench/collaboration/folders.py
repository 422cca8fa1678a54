"""Linked folders for the real command, and seals made over HTTP, for the benchmarks in this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.model import ref as refs
from localstore.core.model import repo as repos
from localstore.core.model import seal as seals
from localstore.core.model.ref import RefCreate
from localstore.core.model.repo import RepoCreate
from localstore.core.model.seal import FinalizeSealsRequest, PrepareSealsRequest, SealChange, TreeDelta
from localstore.core.storage.pack import write_packs
from svc.api import Api

HANDLE = "bench"


def environment(base: Path, server: str) -> dict[str, str]:
    """The environment variables with which `svc` runs as the account that `scripts.bench.ingest.signed_in`
    made."""
    return {
        **os.environ,
        "SVC_HOME": str(base / "home"),
        "SVC_SERVER": server,
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }


def svc(folder: Path, env: Mapping[str, str], *words: str) -> str:
    """Run the command `svc WORDS` in the folder. Returns its output. Raises an error if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "svc", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"svc {' '.join(words)}: {done.stderr}")
    return done.stdout


def make_linked_folder(api: Api, base: Path, env: Mapping[str, str], name: str) -> tuple[Path, str]:
    """Create a repository and a folder linked to it. Returns (folder, id of the repository)."""
    made = api.send(repos.CREATE, RepoCreate(name=name))
    folder = base / name
    folder.mkdir()
    svc(folder, env, "repo", "init", f"{HANDLE}/{name}")
    return folder, made.id


def write(folder: Path, files: Mapping[str, bytes | None]) -> None:
    for name, data in files.items():
        path = folder / name
        if data is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def seal(api: Api, repo_id: str, branch: str, files: Mapping[str, bytes | None], head: str | None) -> str:
    """Seal changes on a branch over HTTP, without a folder. `files`: path → content, or None to remove the
    file. `head`: the newest seal of the branch. Returns the id of the new seal."""
    texts = {digest(data): data for data in files.values() if data is not None}
    for pack in write_packs((name, data, True) for name, data in texts.items()):
        api.payload.put_pack(repo_id, pack)
    changes = [
        SealChange(path=path, kind=None, digest="", size=0)
        if data is None
        else SealChange(path=path, kind="text", digest=digest(data).hex(), size=len(data))
        for path, data in files.items()
    ]
    credential = api.http.credential
    assert credential is not None  # it just signed in
    key = credential.key
    asked = PrepareSealsRequest(
        branch=branch,
        device_key_id=key.id,
        expected_head=head,
        seals=[TreeDelta(message=branch, changes=changes)],
    )
    prepared = api.send(seals.PREPARE_SEALS, asked, id=repo_id)
    signed = FinalizeSealsRequest(
        prepare_id=prepared.prepare_id,
        device_key_id=key.id,
        signatures=[b64u(key.sign(unb64u(one.bytes))) for one in prepared.seals],
    )
    return api.send(seals.FINALIZE_SEALS, signed, id=repo_id).items[-1].id


def branch(api: Api, repo_id: str, name: str, head: str) -> None:
    api.send(refs.CREATE, RefCreate(type="branch", name=name, head=head), id=repo_id)
