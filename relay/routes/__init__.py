"""Routes by noun. Importing a module of this package puts its routes into the table; subjects of
`relay.domain` have theirs beside their rules."""

from __future__ import annotations

import importlib
import pkgutil

from relay import domain


def load() -> None:
    """Import every module here and in the folders below, then the routes and pages of each subject, in the
    order of their names."""
    for package in (__name__, domain.__name__):
        found = importlib.import_module(package)
        names = sorted(info.name for info in pkgutil.walk_packages(found.__path__, f"{package}."))
        for name in names:
            if package == __name__ or {"routes", "pages"} & set(name.split(".")):
                importlib.import_module(name)
