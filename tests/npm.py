"""Packages of npm, for tests that run what others wrote for node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REGISTRY_SECONDS = 60  # that installing may take


def install(folder: Path, *packages: str) -> None:
    """Install `packages`, else those of the folder's package.json, into the folder. npm's cache lies there
    too, so nothing is left in HOME. Skips where there is no node, or no registry for them."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    command = [
        "npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts",
        "--cache", str(folder / "cache"), *packages,
    ]  # fmt: skip
    try:
        subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=REGISTRY_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install its packages within {REGISTRY_SECONDS} s")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"npm cannot install its packages: {error.stderr}")
