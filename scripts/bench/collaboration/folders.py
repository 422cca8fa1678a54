"""Working copies of the command for the benchmarks of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from localstore.core.model import repo as repos
from localstore.core.model.repo import RepoCreate
from svc.api import Api

HANDLE = "bench"


def environment(base: Path, server: str) -> dict[str, str]:
    """Of the command of the account that `scripts.bench.ingest.signed_in` made."""
    return {
        **os.environ,
        "SVC_HOME": str(base / "home"),
        "SVC_SERVER": server,
        "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    }


def svc(folder: Path, env: Mapping[str, str], *words: str) -> str:
    """The output of a command, which must succeed."""
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


def linked(api: Api, base: Path, env: Mapping[str, str], name: str) -> tuple[Path, str]:
    """A folder of a new repository, and its id."""
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
