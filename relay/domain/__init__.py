"""The relay by subject. Each subject has a folder with its rules, SQL statements (`rows`), routes and
pages.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def load() -> None:
    """Import the routes and pages of every subject, in the order of their names; importing them puts them
    into the route table."""
    names = sorted(info.name for info in pkgutil.walk_packages(__path__, f"{__name__}."))
    for name in names:
        if {"routes", "pages"} & set(name.split(".")):
            importlib.import_module(name)
