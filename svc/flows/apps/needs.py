"""Finds out which models an app needs, and pulls missing ones before the app is launched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from localstore.core.errors import NotFound, SvcError, UsageError
from localstore.core.manifest import RepoManifest
from localstore.core.paths import terminal_safe
from localstore.models.errors import ModelMissing, NoSuchModel
from localstore.models.names import ModelName, parse
from localstore.models.store import Models
from svc.flows.llm.chat import bring
from svc.flows.llm.talk import Server
from svc.flows.models import registry
from svc.flows.models.fetching import Tell
from svc.flows.models.pull import pull
from svc.flows.place.where import Where
from svc.http.origin import parse_origin


class Needs(NamedTuple):
    """The models that an app needs, and whether it needs the local LLM server at all. `preferred` is a model
    to use instead of the first of `models`, if that model is available."""

    server: bool
    models: list[ModelName]
    preferred: ModelName | None


def needs_of(manifest: RepoManifest) -> Needs:
    """Return the models that an app's manifest (its `.svc.yaml`) names under `models:` and `ollama_tag`.
    Raises UsageError for a text that is not the name of a model."""
    names = [parse(name) for name in manifest.models]
    preferred = _parse_preferred(manifest.ollama_tag, names)
    uses = manifest.launch is not None and bool(manifest.launch.placeholders)
    if not names and preferred is not None:
        names = [preferred._replace(tag="latest")] if preferred.tag != "latest" else [preferred]
    return Needs(bool(names) or uses, names, preferred if preferred not in names[:1] else None)


def _parse_preferred(tag: str | None, names: list[ModelName]) -> ModelName | None:
    """Return the model that the manifest prefers by `ollama_tag`; None if it has no such tag. The tag is a
    whole name (`qwen:q4_k_m`), or only the part after the colon. In the second case the part before the colon
    is taken from the first of `names`."""
    if tag is None:
        return None
    if names and ":" not in tag and "/" not in tag and tag != names[0].name:
        return parse(f"{names[0].without_tag}:{tag}")
    return parse(tag)


class ModelProvider:
    """Pulls the models that an app needs, and makes them available to the LLM server on a port. `shared` says
    whether that server loads models from svc's own store of models. `note` is called with a sentence about
    the chosen model, `tell` with the progress of pulls."""

    def __init__(
        self, where: Where, models: Models, port: int, shared: bool, note: Callable[[str], None], tell: Tell
    ) -> None:
        self._where, self._models, self._shared = where, models, shared
        self._server, self._note, self._tell = Server(port), note, tell

    def bring_all(self, needs: Needs) -> ModelName | None:
        """Pull the missing models. Returns the main model of the app, which is the preferred one or else the
        first of its list; None if the app needs no model. Raises the errors of a pull."""
        first, rest = needs.models[:1], needs.models[1:]
        chosen = [self._bring_first(name, needs.preferred) for name in first]
        for name in rest:
            self._bring(name)
        return chosen[0] if chosen else None

    def _bring_first(self, default: ModelName, preferred: ModelName | None) -> ModelName:
        if preferred is None:
            self._bring(default)
            return default
        try:
            self._bring(preferred)
            return preferred
        except (NoSuchModel, NotFound) as error:
            self._note(f"{error.detail}; the default of the pack is used: {default.short}")
        except SvcError as error:
            if not self._is_here(default):
                raise
            self._note(f"{preferred.short} cannot be pulled ({error.detail}); {default.short} is used")
        self._bring(default)
        return default

    def _is_here(self, name: ModelName) -> bool:
        if not self._shared:
            return str(name) in _names(self._server)
        try:
            self._models.files_to_load(self._models.find(name))
        except ModelMissing:
            return False
        return True

    def _bring(self, name: ModelName) -> None:
        if self._is_here(name):
            return
        try:
            self._models.find(name)
        except ModelMissing:
            self._require_no_other_server(name)
            self._note(f"pulling {name.short}, which the app needs")
            pull(self._where, self._models, name.short, None, self._tell)
            self._note(f"pulled {name.short}")
        if not self._shared:
            bring(self._server, self._models, name)

    def _require_no_other_server(self, name: ModelName) -> None:
        """Raise UsageError if the name of a model contains a server, unless that is the command's own server
        or a registry of models. An app's manifest must not choose any other server."""
        if not name.host or registry.origin_of(name, self._where.environment) is not None:
            return
        own = None
        with suppress(UsageError):  # nobody has signed in: each server is another one
            own = self._where.server
        if parse_origin(name.host) != own:
            raise UsageError(
                f"the app needs {terminal_safe(name.short)}, a model of another server; if you trust that "
                "server, pull it first by this name"
            )


def _names(server: Server) -> set[str]:
    models = server.get("/api/tags").get("models") or []
    return {str(model.get("name")) for model in models if isinstance(model, dict)}
