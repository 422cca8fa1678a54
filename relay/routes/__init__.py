"""Routes by noun. Importing a module of this package puts its routes into the table."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> None:
    """Import every module here, in the order of their names."""
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
