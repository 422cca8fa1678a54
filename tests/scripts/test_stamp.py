"""Three editions are built from one source, and each starts only as what it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.stamp import EDITIONS, ROOT, copy, stamp_source
from tests.depth import rounds
from tests.patience import PATIENCE

SECRETS = {"TR_ENROLL_CHALLENGE": "0123456789abcdef", "TR_VALIDATE_JWT_AUD": "0123456789abcdef"}


def relay(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-P", "-m", "relay", *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("edition", EDITIONS[: rounds(1, len(EDITIONS))])
def test_a_build_is_its_edition_and_refuses_to_be_another(tmp_path: Path, edition: str) -> None:
    build = tmp_path / "build"
    build.mkdir()
    copy(build, edition)
    told = relay(build, "version")
    assert told.returncode == 0
    assert edition in told.stdout
    for claimed in EDITIONS:
        variables = {**SECRETS, "TR_EDITION": claimed, "TR_PUBLIC_URL": "https://node.example"}
        started = relay(build, "serve", "--data", str(tmp_path / "data"), **variables)
        assert started.returncode == 1
        assert len(started.stderr.splitlines()) == 1
        assert ("TR_EDITION" in started.stderr) is (claimed != edition)  # else: the database is not migrated


def test_only_editions_that_exist_can_be_built() -> None:
    source = (ROOT / "relay" / "base" / "edition.py").read_text("utf-8")
    with pytest.raises(ValueError, match="no edition enterprise"):
        stamp_source(source, "enterprise", "c", "t")
    with pytest.raises(ValueError, match="no constant"):
        stamp_source("EDITION = 1", EDITIONS[0], "c", "t")


def test_the_constants_are_those_of_the_build() -> None:
    source = (ROOT / "relay" / "base" / "edition.py").read_text("utf-8")
    found: dict[str, object] = {}
    exec(stamp_source(source, "managed", "c0ffee", "2026-01-02T03:04:05Z"), found)
    assert [found[name] for name in ("EDITION", "COMMIT", "BUILT_AT")] == [
        "managed",
        "c0ffee",
        "2026-01-02T03:04:05Z",
    ]
    assert json.dumps(found["API_VERSION"]) == "1"
