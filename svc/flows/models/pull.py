"""`svc llm pull NAME` and `POST /api/pull`: downloads a model from a repository or registry."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe
from localstore.core.times import rfc3339_now
from localstore.models.errors import BadModel, ModelMissing, NoSuchModel
from localstore.models.names import ModelName, parse
from localstore.models.store import Models, Record
from svc.flows.models import registry, repository
from svc.flows.models.choosing import OtherModel
from svc.flows.models.fetching import Part, PullStep, Tell, fetch_parts
from svc.flows.models.local import PulledModel, require_one_model
from svc.flows.place.where import Where

_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9_]{0,15}\Z")  # of a file; versions of models begin with a digit
HOPS = 3  # from one `models:` to the next


class _FoundModel(NamedTuple):
    """A model that was found: its files, which are to be downloaded, and the record to store when it is
    installed. The record does not have the digests of the files yet."""

    files: list[Part]
    projector: Part | None
    record: Record


def pull(where: Where, models: Models, typed: str, name: str | None, tell: Tell) -> PulledModel:
    """Download the model that `typed` names, and install it under the name `name`. If `name` is None, the
    model is installed under the name `typed`. `tell` is called with each step. Raises UsageError,
    NoSuchModel, NotFound, RegistryFailed, ServerMisbehaved, DiskError, BadModel."""
    source = parse(typed)
    _require_no_file_name(source)
    chosen = parse(name) if name else source
    tell(PullStep("pulling manifest"))
    looked = _look(where, models, source)
    before = _find_installed(models, chosen)
    _require_same_source(chosen, before, looked.record)
    parts = [*looked.files, *([looked.projector] if looked.projector else [])]
    with models.reserve(part.key for part in parts):
        digests = fetch_parts(models, parts, tell, chosen.short)
        tell(PullStep("verifying sha256 digest"))
        files = digests[: len(looked.files)]
        projector = digests[-1] if looked.projector is not None else None
        _require_whole(models, looked, files, projector)
        record = msgspec.structs.replace(
            looked.record, model=files[0], shards=files[1:], projector=projector, modified_at=rfc3339_now()
        )
        new = before is None or before.digests != record.digests
        tell(PullStep("writing manifest"))
        installed = models.put(chosen, record)
    tell(PullStep("success"))
    return PulledModel(installed, new)


def _look(where: Where, models: Models, typed: ModelName) -> _FoundModel:
    """Find the model that the typed name means. The `.svc.yaml` of a repository may refer to another
    repository of the same server, or to a model of a registry. Raises NoSuchModel if the model does not
    exist, or if `.svc.yaml` refers to another server."""
    name, label = typed, typed.short
    for _ in range(HOPS):
        origin = registry.origin_of(name, where.environment)
        if origin is not None:
            layers = registry.find(origin, name)
            record = Record(
                model="",
                modified_at="",
                system=layers.system,
                license=layers.license,
                parameters=layers.parameters,
                messages=layers.messages,
            )
            return _FoundModel(layers.files, layers.projector, record)
        if name.host and name is not typed:
            raise NoSuchModel(
                f"{label} names {name.short}, a model of another server; if you trust that server, pull it "
                "by this name yourself"
            )
        if name.host:
            where.use_server(name.host)
        choice = repository.find(where, models, name)
        if not isinstance(choice, OtherModel):
            record = Record(model="", modified_at="", source=choice.source)
            return _FoundModel(choice.files, choice.projector, record)
        name = parse(choice.name)
    raise NoSuchModel(f"{label} names a model that names another one, and so on; name the last one itself")


def _require_no_file_name(name: ModelName) -> None:
    """Raise UsageError if the name looks like the name of a file. Checked before a registry is asked for
    it."""
    if not name.owner and _SUFFIX.search(name.name):
        raise UsageError(
            f"there is no file {name.name} here, and a registry has no models that are named like files; "
            "name the file by its path, or the model by its name"
        )


def _find_installed(models: Models, name: ModelName) -> Record | None:
    try:
        return models.find(name).record
    except ModelMissing:
        return None


def _require_same_source(name: ModelName, before: Record | None, looked: Record) -> None:
    """Raise UsageError if this name was pulled from another repository before. The repository that has the
    name now may belong to a stranger. `before` is the record of the installed model, `looked` that of the
    model that was found now."""
    if before is None or before.source is None or looked.source is None:
        return
    if (before.source.server, before.source.repo_id) != (looked.source.server, looked.source.repo_id):
        raise UsageError(
            f"{name.short} was pulled from another repository ({before.source.repo_id} on "
            f"{terminal_safe(before.source.server)}), which had this name then; to take this one: "
            f"svc llm rm {name.short}, or pull it --as another name"
        )


def _require_whole(models: Models, looked: _FoundModel, files: list[str], projector: str | None) -> None:
    """Raise BadModel unless the downloaded `files` (given by their SHA-256) are all the files of one model.
    `projector` is the SHA-256 of the file that must be a projector, which turns pictures into the model's
    input."""
    abouts = [about for about in map(models.about, files) if about is not None]
    label = terminal_safe(looked.files[0].path)
    if len(abouts) != len(files) or any(about.header.is_projector for about in abouts):
        raise BadModel(f"{label} turns pictures into what another model reads, and generates nothing")
    require_one_model([about.header.shard for about in abouts], label)
    eye = models.about(projector) if projector is not None else None
    if looked.projector is not None and (eye is None or not eye.header.is_projector):
        raise BadModel(f"{terminal_safe(looked.projector.path)} is no projector")
