"""The signature of a release in words, for the app and its line mode."""

from __future__ import annotations

from localstore.core.model.release import Release
from svc.flows.catalog.publication import fault_of
from tui.text import Part


def signature(repo_id: str, release: Release) -> Part:
    """Whether the release has a valid signature of version, seal and files: (a text, the role for its
    colour)."""
    if fault_of(repo_id, release) is not None:
        return "signature does not verify", "bad"
    return ("signed", "good") if release.publication.signed else ("unsigned", "dim")
