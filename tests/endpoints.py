"""Every endpoint that the kernel declares."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from localstore.core import model
from localstore.core.endpoint import Endpoint


def endpoints() -> dict[str, Endpoint[Any]]:
    """By module and constant: `ref.CREATE`."""
    found: dict[str, Endpoint[Any]] = {}
    for info in pkgutil.walk_packages(model.__path__, f"{model.__name__}."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, Endpoint):
                found[f"{info.name.rpartition('.')[2]}.{name}"] = value
    return found
