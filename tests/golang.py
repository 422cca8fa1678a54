"""Programs written in Go by others, for tests that run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD_SECONDS = 20  # that a test waits for Go; what was compiled by then is in Go's cache for the next run


def program(folder: Path, package: str, modules: dict[str, str]) -> Path:
    """The executable of the Go command `package`, which stays in Go's cache once it was built. `folder`: an
    empty one, for a go.mod that requires these versions of `modules`. Skips where there is no Go or no such
    module, and where building takes longer than BUILD_SECONDS."""
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    required = [f"require {module} {version}" for module, version in modules.items()]
    (folder / "go.mod").write_text("\n\n".join(["module tests", "go 1.25.8", f"tool {package}", *required]))
    try:
        _go(folder, "list", "-mod=mod", "-deps", package)  # it adds what these modules require
        return Path(_go(folder, "tool", "-n", package).strip())
    except subprocess.TimeoutExpired:
        pytest.skip(f"{package} was not built within {BUILD_SECONDS} s; the next run goes on with it")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{package} cannot be built: {error.stderr}")


def _go(folder: Path, *words: str) -> str:
    environment = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    return subprocess.run(
        ["go", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=BUILD_SECONDS,
    ).stdout
