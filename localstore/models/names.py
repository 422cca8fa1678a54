"""Names of models: `[[HOST/]OWNER/]NAME[:TAG]`. A name without a tag has the tag `latest`."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe

LATEST = "latest"
NONE = "_"  # stands in paths for a host or owner that a name lacks; no segment begins with it
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,200}(?::[0-9]{1,5})?")
_CHARS = 500


class ModelName(NamedTuple):
    """The parts of a model's name. `host` and `owner` are empty if the name has none."""

    name: str
    tag: str = LATEST
    owner: str = ""
    host: str = ""

    def __str__(self) -> str:
        return f"{self.without_tag}:{self.tag}"

    @property
    def without_tag(self) -> str:
        return "/".join(part for part in (self.host, self.owner, self.name) if part)

    @property
    def short(self) -> str:
        """The name in the form that users type, without the tag `latest`."""
        return self.without_tag if self.tag == LATEST else str(self)

    @property
    def path(self) -> PurePosixPath:
        """Where the record of this name is stored, relative to the folder `models/names`."""
        return PurePosixPath(self.host.replace(":", "+") or NONE, self.owner or NONE, self.name, self.tag)

    @classmethod
    def at(cls, path: PurePosixPath) -> ModelName | None:
        """The name whose record is stored at this path, the inverse of `path`. None if no name has
        this path."""
        if len(path.parts) != 4:
            return None
        host, owner, name, tag = path.parts
        parts = (host.replace("+", ":").replace(NONE, ""), owner.replace(NONE, "", owner == NONE), name)
        try:
            return parse("/".join(part for part in parts if part) + f":{tag}")
        except UsageError:
            return None


def parse(text: str) -> ModelName:
    """Parse the name of a model. Raises UsageError."""
    front, colon, tag = text.rpartition(":")
    if not colon or "/" in tag:
        front, tag = text, LATEST
    *before, name = front.split("/")
    host, owner = ["", "", *before][-2:] if len(before) <= 2 else ["?", "?"]
    segments = [name, tag, *([owner] if owner else [])]
    valid = len(text) <= _CHARS and all(_SEGMENT.fullmatch(segment) for segment in segments)
    valid = valid and all(before) and (not host or _HOST.fullmatch(host) is not None)
    if not valid:
        raise UsageError(
            f"'{terminal_safe(text[:80])}' is not the name of a model; one is NAME, OWNER/NAME or "
            "OWNER/NAME:TAG, of letters, digits, '.', '_' and '-'"
        )
    return ModelName(name, tag, owner, host)


def from_file(stem: str) -> str:
    """A model's name made from a file name: characters that names do not allow become `-`."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")
    return name[:80] or "model"
