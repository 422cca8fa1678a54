"""`svc llm pull FILE`: takes a GGUF file of this machine into the cache, under a name."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe
from localstore.models.intake import take_in
from localstore.models.names import ModelName, from_file, parse
from localstore.models.store import Installed, Models, Record, now
from localstore.progress import Progress

HOW = {
    "reflink": "shares its bytes with the file",
    "link": "is the same file under a second name, so its bytes must not change",
    "copy": "is a copy of the file",
    "upload": "was uploaded",
}
"""How the cache holds a file → what a sentence says of it."""


class Pulled(NamedTuple):
    """A name, and whether its bytes came now."""

    installed: Installed
    new: bool


def pull_file(models: Models, file: Path, name: str | None, progress: Progress) -> Pulled:
    """Take the file in. `name`: without one, the file's. Raises UsageError, BadModel, DiskError."""
    chosen = name_of(file, name)
    taken = take_in(models, file, progress)
    if taken.about.header.is_projector:
        raise UsageError(
            f"{terminal_safe(str(file))} turns pictures into what another model reads and generates nothing; "
            "give it to a model with POST /api/create"
        )
    return Pulled(models.put(chosen, Record(model=taken.digest, modified_at=now())), taken.new)


def name_of(file: Path, name: str | None) -> ModelName:
    """Raises UsageError for a name that no model can have."""
    return parse(name) if name else parse(from_file(file.stem))


def is_file(typed: str) -> bool:
    """Whether what was typed names a file and not a model."""
    return typed.startswith((".", "/", "~")) or typed.lower().endswith(".gguf") or Path(typed).is_file()
