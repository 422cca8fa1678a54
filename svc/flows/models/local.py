"""`svc llm pull FILE`: adds a GGUF file to the models of this machine, under a name.

If a model has several files (shards), any of them can be given. The other shards must be in the same
folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from localstore.core.errors import UsageError
from localstore.core.model.limits import GGUF_SHARDS
from localstore.core.paths import terminal_safe
from localstore.core.times import rfc3339_now
from localstore.models.errors import BadModel, ModelMissing
from localstore.models.intake import Taken, take_in
from localstore.models.names import ModelName, from_file, parse
from localstore.models.store import Installed, Models, Record
from localstore.progress import Progress

HOW = {
    "reflink": "shares its bytes with the file",
    "link": "is the same file under a second name, so its bytes must not change",
    "copy": "is a copy of the file",
    "upload": "was uploaded",
    "fetched": "was fetched",
}
"""How the cache holds a file → what a sentence says of it."""

ATTEMPTS = 3

_SHARD = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})", re.DOTALL)


class PulledModel(NamedTuple):
    """The result of a pull: the installed model, and whether its bytes were new on this machine."""

    installed: Installed
    new: bool


def pull_file(
    models: Models, file: Path, name: str | None, projector: Path | None, progress: Progress
) -> PulledModel:
    """Add the file, together with the other shards of its model, to the models of this machine. `name` is the
    name of the model; if it is None, the name is made from the file's. `projector` is the file with which the
    model reads pictures. Raises UsageError, BadModel, DiskError."""
    chosen = name_of(file, name)
    files = shards_of(file)
    for shard in files:
        if not shard.is_file() and len(files) > 1:
            raise BadModel(
                f"{terminal_safe(str(shard))} is missing: the model has {len(files)} files, which lie "
                "together"
            )
    for _ in range(ATTEMPTS - 1):
        with suppress(ModelMissing):  # somebody removed another name of its blobs meanwhile
            return _take_files(models, files, chosen, projector, progress)
    return _take_files(models, files, chosen, projector, progress)


def _take_files(
    models: Models, files: list[Path], name: ModelName, projector: Path | None, progress: Progress
) -> PulledModel:
    file = files[0]
    blobs = [take_in(models, shard, progress) for shard in files]
    if blobs[0].about.header.is_projector:
        raise UsageError(
            f"{terminal_safe(str(file))} turns pictures into what another model reads and generates nothing; "
            "give it to its model: svc llm pull MODEL.gguf --projector FILE.gguf"
        )
    require_one_model([blob.about.header.shard for blob in blobs], terminal_safe(str(file)))
    projector_blob = _projector(models, projector, progress) if projector is not None else None
    record = Record(
        model=blobs[0].digest,
        shards=[blob.digest for blob in blobs[1:]],
        projector=projector_blob.digest if projector_blob is not None else None,
        modified_at=rfc3339_now(),
    )
    return PulledModel(models.put(name, record), any(blob.new for blob in blobs))


def _projector(models: Models, file: Path, progress: Progress) -> Taken:
    blob = take_in(models, file, progress)
    if not blob.about.header.is_projector:
        raise UsageError(f"{terminal_safe(str(file))} is not a projector: it generates by itself")
    return blob


def require_one_model(places: Sequence[tuple[int, int]], label: str) -> None:
    """Raise BadModel unless these files are all shards of one model, in order. `places` has (shard number
    from 0, number of shards) of each file. `label` names the model in the error."""
    if list(places) != [(number, len(places)) for number in range(len(places))]:
        place, count = next(
            (
                place_of_file
                for number, place_of_file in enumerate(places)
                if place_of_file != (number, len(places))
            ),
            places[0],
        )
        raise BadModel(
            f"{label} is shard {place + 1} of {count} of a model, and its name does not say so; the files of "
            "a model end in -00001-of-00003.gguf"
        )


def shards_of(file: Path) -> list[Path]:
    """Return the paths of all files of the model that this file belongs to, in order. They are found by their
    names. If the file is the whole model, only its own path is returned."""
    match = _SHARD.fullmatch(file.stem)
    count = int(match[3]) if match else 1
    if match is None or not 1 < count <= GGUF_SHARDS or not 0 < int(match[2]) <= count:
        return [file]
    return [
        file.with_name(f"{match[1]}-{number:05}-of-{count:05}{file.suffix}") for number in range(1, count + 1)
    ]


def name_of(file: Path, name: str | None) -> ModelName:
    """Return the name under which a model is added. It is `name` if that is given, else it is made from the
    file's name without the shard number. Raises UsageError if the result is not a valid name of a model."""
    match = _SHARD.fullmatch(file.stem)
    return parse(name) if name else parse(from_file(match[1] if match else file.stem))


def is_file(typed: str) -> bool:
    """Return whether the word that the user typed names a file. Otherwise it names a model."""
    if typed.startswith((".", "/", "~")) or typed.lower().endswith(".gguf"):
        return True
    try:
        return Path(typed).is_file()
    except (OSError, ValueError):  # a name too long, NUL
        return False


def file_at(base: Path, typed: str) -> Path:
    """Return the absolute path of the file that the user typed, which may be relative to the folder `base`.
    Raises UsageError for `~USER` if there is no such user."""
    try:
        return (base / Path(typed).expanduser()).absolute()
    except RuntimeError:
        user = terminal_safe(Path(typed).parts[0][:80])
        raise UsageError(f"{user} is no path of a file: there is no such user") from None
