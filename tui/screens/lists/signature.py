"""The signature of a release in words, for the app and its line mode (the app as plain lines of text)."""

from __future__ import annotations

from localstore.core.model.release import Release
from svc.flows.catalog.publication import fault_of
from tui.text import Part


def signature(repo_id: str, release: Release) -> Part:
    """Whether the signature of a release (of its version, seal and files) is valid, as a part: (text,
    role)."""
    if fault_of(repo_id, release) is not None:
        return "signature does not verify", "bad"
    return ("signed", "good") if release.publication.signed else ("unsigned", "dim")
