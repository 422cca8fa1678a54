"""Who may review a proposal, each with a reason: their role, and how much of the files they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from rich.cells import cell_len

from localstore.core.errors import Invalid, NotFound, TooLarge
from localstore.core.model import history
from localstore.core.model.access import Collaborator
from localstore.core.words import count
from svc.api import Api
from tui.reads import Read
from tui.text import Part, safe

BLAMED = 8  # files whose lines are looked at
HANDLE = 24  # columns of a handle, where roles begin, at most
ROLE = 9  # columns of a role
APPROVE = ("write", "maintain", "admin", "owner")  # roles whose approval counts


class Written(msgspec.Struct, frozen=True):
    """How many lines of some files each person wrote, by handle, and how many lines there are."""

    by: dict[str, int]
    lines: int


def written_by(repo_id: str, seal_id: str, paths: Sequence[str]) -> Read[Written]:
    """Returns a request for who wrote the lines of the first BLAMED of these files, as they are in a seal."""
    paths = sorted(paths)[:BLAMED]

    def call(api: Api) -> Written:
        by: dict[str, int] = {}
        for path in paths:
            try:
                blame = api.send(history.BLAME, id=repo_id, seal_id=seal_id, path=path)
            except (NotFound, Invalid, TooLarge):
                continue  # it is new, or no text
            for part in blame.ranges:
                handle = part.who.handle or ""
                by[handle] = by.get(handle, 0) + part.end - part.start + 1
        return Written(by, sum(by.values()))

    return Read(f"repos/{repo_id}/written_by/{seal_id}/{'/'.join(paths)}", Written, call)


def roles_of(collaborators: Iterable[Collaborator]) -> dict[str, str]:
    """Returns the roles of the people in a repository, by handle."""
    return {
        person.account.handle: person.role
        for person in collaborators
        if person.state == "active" and person.account.handle
    }


def reviewer_rows(
    handles: Iterable[str], roles: Mapping[str, str], written: Written | None, files: int
) -> dict[str, list[Part]]:
    """Returns for each handle the parts of its row, those first who wrote most. `files`: how many files are
    changed."""
    named = list(handles)
    by = written.by if written is not None else {}
    room = min(HANDLE, max((cell_len(handle) + 1 for handle in named), default=0))
    about = "these files" if files <= BLAMED else f"the first {BLAMED} files"
    rows: dict[str, list[Part]] = {}
    for handle in sorted(named, key=lambda handle: -by.get(handle, 0)):
        name = f"@{safe(handle)}"
        role = roles.get(handle, "")
        blank = " " * (room - cell_len(name))
        parts: list[Part] = [(name, "person"), (f"{blank}  {role:<{ROLE}}", "dim")]
        if written is not None and by.get(handle):
            share = f"{by[handle]} of {count(written.lines, 'line')}"
            parts.append((f"wrote {share} of {about}", "text"))
        elif role and role not in APPROVE:
            parts.append(("approval only advises", "dim"))
        rows[handle] = parts
    return rows
