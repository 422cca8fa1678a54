"""The signature of a release in words, for the app and for its line mode (the app as plain lines of text)."""

from __future__ import annotations

from localstore.core.model.release import Release
from svc.flows.catalog.publication import fault_of
from tui.text import Part


def signature(repo_id: str, release: Release) -> Part:
    """Returns a part (text, role) that says whether the signature of a release is valid. The signature covers
    the version, the seal and the files."""
    if fault_of(repo_id, release) is not None:
        return "signature does not verify", "bad"
    return ("signed", "good") if release.publication.signed else ("not signed", "dim")
