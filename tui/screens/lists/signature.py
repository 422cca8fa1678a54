"""The signature of a release in words, for the app and its line mode."""

from __future__ import annotations

from localstore.core.model.release import Release
from svc.flows.catalog.publication import fault_of
from tui.text import Part


def signature(repo_id: str, release: Release) -> Part:
    """Whether the release has a signature that verifies over version, seal and files: (the words, the role
    that colours them)."""
    if fault_of(repo_id, release) is not None:
        return "signature does not verify", "bad"
    return ("signed", "good") if release.publication.signed else ("unsigned", "dim")
