"""Lists every error class of the project."""

from __future__ import annotations

import importlib
import pkgutil

import localstore.errors
import localstore.models.errors  # noqa: F401
from localstore.core import model
from localstore.core.errors import SvcError


def classes() -> list[type[SvcError]]:
    """`SvcError` and all its subclasses, each parent before its children."""
    for module in pkgutil.walk_packages(model.__path__, f"{model.__name__}."):
        importlib.import_module(module.name)
    return _below(SvcError)


def _below(root: type[SvcError]) -> list[type[SvcError]]:
    """The class and its subclasses, without errors at the relay's start, which are never sent."""
    ours = [child for child in root.__subclasses__() if child.__module__.startswith("localstore.")]
    return [root, *(leaf for child in ours for leaf in _below(child))]
