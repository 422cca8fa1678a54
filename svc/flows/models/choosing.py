"""Decides which files of a repository are meant by the name of a model, `OWNER/NAME[:TAG]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from localstore.core.manifest import RepoManifest
from localstore.core.model.limits import GGUF_SHARDS
from localstore.core.paths import terminal_safe
from localstore.models.errors import NoSuchModel
from localstore.models.names import LATEST
from localstore.record.database import SealedFile

NAMED = 20  # models that an error lists
_SHARD = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})", re.DOTALL)


class Choice(NamedTuple):
    """The chosen model in a repository. It has the paths of the model's files in order and, if there is one,
    the path of its projector (the file with which it reads pictures)."""

    files: list[str]
    projector: str | None


class OtherModel(NamedTuple):
    """The result of a choice if the chosen model is in another repository. Has the model's name, as it is
    listed under `models:` of this repository."""

    name: str


class _Model(NamedTuple):
    """A model in the repository, which is one file or several shards. `label` is the path of its first file
    without shard number and suffix."""

    label: PurePosixPath
    files: list[str]


def choose(
    files: Mapping[str, SealedFile], manifest: RepoManifest, tag: str, repository: str
) -> Choice | OtherModel:
    """Return the model that a tag names. The tag is the end of a file's stem (its name without the suffix), a
    folder, or an entry of `models:` in the manifest (`.svc.yaml`), searched in this order. Without a tag
    (`latest`), the manifest's `default_model` is meant, else the first of its `models:`, else the only model.

    Raises NoSuchModel, which lists the models. `repository` is the repository's name for errors."""
    models = _models(files)
    if tag != LATEST or _matching_models(models, tag):
        model = _find_model(models, manifest, tag, repository)
    elif manifest.default_model is not None:
        model = _find_model(models, manifest, manifest.default_model, repository)
    elif manifest.models:
        model = _find_model(models, manifest, manifest.models[0], repository)
    elif len(models) == 1:
        model = models[0]
    elif models:
        raise NoSuchModel(f"{repository} has several models; name one: {_list(models, repository)}")
    else:
        raise NoSuchModel(f"{repository} has no model: no file of it ends in .gguf")
    if isinstance(model, OtherModel):
        return model
    return Choice(model.files, _projector(files, model))


def _find_model(
    models: list[_Model], manifest: RepoManifest, tag: str, repository: str
) -> _Model | OtherModel:
    matches = _matching_models(models, tag)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NoSuchModel(
            f"'{terminal_safe(tag)}' means several models of {repository}: {_list(matches, repository)}"
        )
    lowered = tag.lower()
    for name in manifest.models:
        if name.lower() == lowered or name.lower().endswith((f":{lowered}", f"/{lowered}")):
            return OtherModel(name)
    if "/" in tag and tag == manifest.default_model and not tag.lower().endswith(".gguf"):
        return OtherModel(tag)
    there = f"it has {_list(models, repository)}" if models else "no file of it ends in .gguf"
    raise NoSuchModel(f"{repository} has no model '{terminal_safe(tag)}'; {there}")


def _matching_models(models: list[_Model], tag: str) -> list[_Model]:
    lowered = tag.lower()
    whole = [model for model in models if lowered in (model.files[0].lower(), str(model.label).lower())]
    if whole:
        return whole
    by_stem = [model for model in models if _ends_in(model.label.name.lower(), lowered)]
    if by_stem:
        return by_stem
    return [model for model in models if lowered in str(model.label.parent).lower().split("/")]


def _ends_in(stem: str, tag: str) -> bool:
    """Return whether the stem ends with the tag. The tag must begin at the start of a word in the stem."""
    return stem.endswith(tag) and (len(stem) == len(tag) or not stem[-len(tag) - 1].isalnum())


def _models(files: Mapping[str, SealedFile]) -> list[_Model]:
    """Return the models among the files of a seal. A model of several shards is included only if all its
    shards are there."""
    models: list[_Model] = []
    for path in sorted(files):
        pure = PurePosixPath(path)
        if pure.suffix.lower() != ".gguf" or _is_projector(pure):
            continue
        match = _SHARD.fullmatch(pure.stem)
        if match is None:
            models.append(_Model(pure.with_suffix(""), [path]))
        elif int(match[2]) == 1 and 1 < int(match[3]) <= GGUF_SHARDS:
            shards = [
                str(pure.with_name(f"{match[1]}-{number:05}-of-{match[3]}{pure.suffix}"))
                for number in range(1, int(match[3]) + 1)
            ]
            if all(shard in files for shard in shards):
                models.append(_Model(pure.with_name(match[1]), shards))
    return models


def _is_projector(path: PurePosixPath) -> bool:
    return "mmproj" in path.name.lower()


def _projector(files: Iterable[str], model: _Model) -> str | None:
    """Return the path of the model's projector, the file with which it reads pictures. It is searched in the
    folder of the model; None if there is none. If there are several, the first by name is returned."""
    beside = [
        path
        for path in map(PurePosixPath, files)
        if path.parent == model.label.parent and path.suffix.lower() == ".gguf" and _is_projector(path)
    ]
    return str(min(beside)) if beside else None


def _list(models: list[_Model], repository: str) -> str:
    names = [f"{repository}:{terminal_safe(model.label.name)}" for model in models[:NAMED]]
    more = len(models) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
