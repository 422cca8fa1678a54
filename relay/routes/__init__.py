"""Routes by noun. Importing a module of this package puts its routes into the table."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every module here and in the folders below, in the order of their names."""
    for module in sorted(info.name for info in pkgutil.walk_packages(__path__, f"{__name__}.")):
        importlib.import_module(module)
