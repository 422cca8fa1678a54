"""Whether a release is signed, for the app and its line mode."""

from __future__ import annotations

from localstore.core.model.release import Release
from svc.flows.catalog.publication import fault_of
from tui.text import Part


def signature(repo_id: str, release: Release) -> Part:
    """Whether a signature is there and holds for version, seal and files: the words, and their role."""
    if fault_of(repo_id, release) is not None:
        return "signature does not verify", "bad"
    return ("signed", "good") if release.publication.signed else ("unsigned", "dim")
