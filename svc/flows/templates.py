"""Templates of issues. They are Markdown files of the repository, with front matter as on GitHub.

    .github/ISSUE_TEMPLATE/bug.md     .github/ISSUE_TEMPLATE.md

They are read from the linked folder, else from the newest seal of the default branch. Their bytes are
untrusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from localstore.core import plain_yaml
from localstore.core.errors import Invalid, SvcError
from localstore.core.model import history
from localstore.core.model.history import TreeQuery
from localstore.core.model.limits import ISSUE_BODY_BYTES
from localstore.core.model.repo import Repo
from localstore.core.paths import terminal_safe
from svc.api import Api
from svc.flows.place.refs import seal_of
from svc.flows.place.where import Where

FOLDERS = (".github", "", "docs")
ONE, SEVERAL = "issue_template.md", "issue_template"
MOST = 50


class Template(msgspec.Struct, frozen=True):
    """An issue template. `name` comes from the front matter; without one it is `file`, the file name without
    its ending. `fault` says why the front matter cannot be read, in which case the template cannot be used.
    It is "" otherwise."""

    name: str
    file: str = ""
    about: str = ""
    title: str = ""
    body: str = ""
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    fault: str = ""


def of_issues(where: Where, repo: Repo) -> list[Template]:
    """Return the issue templates of a repository. They are read from the folder if it is linked to that
    repository, else from the default branch. If they cannot be read, returns []."""
    linked = where.linked
    if linked is not None and linked[1].repo_id == repo.id:
        return list(_read_templates(*_on_disk(linked[0])))
    try:
        seal = seal_of(where, repo, repo.default_branch)
        return in_seal(where.reader, repo.id, seal)
    except SvcError:
        return []


def in_seal(api: Api, repo_id: str, seal: str) -> list[Template]:
    """Return the issue templates in a seal. If they cannot be read, returns []."""
    return list(_read_templates(*_in_seal(api, repo_id, seal)))


def parse(name: str, data: bytes) -> Template | None:
    """Return the template in the file `name` with the content `data`. None if the file is too long, or not
    text."""
    if len(data) > ISSUE_BODY_BYTES:
        return None
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    stem = name.rpartition("/")[2].rpartition(".")[0]
    front, body = _split(text)
    try:
        head = _head(front, stem)
    except Invalid as error:
        return Template(name=stem, file=stem, body=text, fault=error.detail)
    return Template(
        name=_word(head.get("name")) or stem,
        file=stem,
        about=_word(head.get("about") or head.get("description")),
        title=_word(head.get("title")),
        body=body,
        labels=_words(head.get("labels")),
        assignees=_words(head.get("assignees")),
    )


def _split(text: str) -> tuple[str, str]:
    """Split the text of a template into its front matter and the rest. The front matter is "" if there is
    none."""
    if not text.startswith("---\n") or "\n---" not in text[3:]:
        return "", text
    front, _, body = text[4:].partition("\n---")
    return front, body.partition("\n")[2].lstrip("\n")


def _head(front: str, stem: str) -> dict[str, object]:
    """Parse the front matter of a template, and return it as a dict. Raises Invalid if it is malformed.
    `stem` is the name of the template in errors."""
    head = plain_yaml.load(front.encode(), f"the front matter of the template {terminal_safe(stem)}") or {}
    if not isinstance(head, dict):
        raise Invalid(f"the front matter of the template {terminal_safe(stem)} is no mapping")
    return head


def _word(value: object) -> str:
    return value.strip()[:200] if isinstance(value, str) else ""


def _words(value: object) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(word for item in items if (word := _word(item)))


def _read_templates(
    names: Callable[[str], list[str]], read: Callable[[str], bytes | None]
) -> Iterator[Template]:
    """Yields the issue templates of the first folder in FOLDERS that has any. `names` is called with a folder
    and returns the names in it. `read` is called with a path and returns the content of the file."""
    for folder in FOLDERS:
        paths = []
        for name in names(folder):
            path = f"{folder}/{name}".lstrip("/")
            if name.lower() == ONE:
                paths.append(path)
            elif name.lower() == SEVERAL:
                paths += [f"{path}/{file}" for file in names(path) if file.lower().endswith(".md")]
        templates = [
            template
            for path in sorted(paths)[:MOST]
            if (data := read(path)) and (template := parse(path, data))
        ]
        if templates:
            yield from templates
            return


def _on_disk(root: Path) -> tuple[Callable[[str], list[str]], Callable[[str], bytes | None]]:
    def names(folder: str) -> list[str]:
        try:
            return sorted(entry.name for entry in (root / folder).iterdir())
        except OSError:
            return []

    def read(path: str) -> bytes | None:
        try:
            with (root / path).open("rb") as file:
                return file.read(ISSUE_BODY_BYTES + 1)
        except OSError:
            return None

    return names, read


def _in_seal(
    api: Api, repo_id: str, seal: str
) -> tuple[Callable[[str], list[str]], Callable[[str], bytes | None]]:
    def names(folder: str) -> list[str]:
        try:
            tree = api.send(history.TREE, query=TreeQuery(path=folder), id=repo_id, sha=seal)
        except SvcError:
            return []
        return sorted(entry.path.rpartition("/")[2] for entry in tree.entries)

    def read(path: str) -> bytes | None:
        try:
            return api.history.raw(repo_id, seal, path, ISSUE_BODY_BYTES)
        except SvcError:
            return None

    return names, read
