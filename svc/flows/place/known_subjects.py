"""Stores the numbers of issues and proposals and the names of labels that this machine has listed. The
shell's completion uses them.

If the file is missing or damaged, nothing is known until issues, proposals or labels are listed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

import msgspec

from localstore.core.model.label import Label
from localstore.core.paths import terminal_safe
from localstore.home import Home
from svc.flows.place.known_file import read_known, write_known

KIND = "subjects"
KEPT = 500  # of each kind


class Numbered(Protocol):
    """An object with a number and a title: an issue or a proposal."""

    @property
    def number(self) -> int: ...
    @property
    def title(self) -> str: ...


N = TypeVar("N", bound=Numbered)


class KnownNames(msgspec.Struct):
    """Names in a repository that this machine has listed before. `subjects` maps the number of an issue or
    proposal to its title. `labels` maps the name of a label to its description. If the repository is a fork,
    `base` is the id of the repository to which its proposals are made; otherwise it is ""."""

    subjects: dict[str, str] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    base: str = ""


def recall(home: Home, repo_id: str) -> KnownNames:
    try:
        return msgspec.json.decode(read_known(home, KIND, repo_id), type=KnownNames)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return KnownNames()


def listing(home: Home, repo_id: str, subjects: Iterable[N]) -> Iterator[N]:
    """Yields issues or proposals unchanged. When the iteration ends, stores their numbers and titles in
    SVC_HOME for the shell's completion."""
    seen: dict[str, str] = {}
    for subject in subjects:
        seen[str(subject.number)] = terminal_safe(subject.title)
        yield subject
    stored = recall(home, repo_id)
    stored.subjects = _keep_newest({**stored.subjects, **seen})
    _write(home, repo_id, stored)


def store_base(home: Home, repo_id: str, base: str) -> None:
    """Store `base`, the id of the repository to which the proposals of the fork `repo_id` are made."""
    stored = recall(home, repo_id)
    if stored.base != base:
        stored.base = base
        _write(home, repo_id, stored)


def listing_labels(home: Home, repo_id: str, labels: Iterable[Label]) -> Iterator[Label]:
    """Yields the labels unchanged. When the iteration ends, stores their names and descriptions in SVC_HOME
    for the shell's completion."""
    seen: dict[str, str] = {}
    for label in labels:
        if label.name == terminal_safe(label.name):
            seen[label.name] = terminal_safe(label.description or "")
        yield label
    stored = recall(home, repo_id)
    stored.labels = _keep_newest({**stored.labels, **seen})
    _write(home, repo_id, stored)


def drop_label(home: Home, repo_id: str, name: str) -> None:
    stored = recall(home, repo_id)
    stored.labels = {
        label: text for label, text in stored.labels.items() if label.casefold() != name.casefold()
    }
    _write(home, repo_id, stored)


def _keep_newest(names: dict[str, str]) -> dict[str, str]:
    return dict(list(names.items())[-KEPT:])


def _write(home: Home, repo_id: str, stored: KnownNames) -> None:
    write_known(home, KIND, repo_id, msgspec.json.encode(stored))
