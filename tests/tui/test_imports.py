"""No file of the app imports itself through others: screens ask a protocol, and the app answers."""

from __future__ import annotations

from collections.abc import Callable

import grimp

from tui.app import SvcApp
from tui.asked import AskedApp

ANSWERS: Callable[[SvcApp], AskedApp] = lambda app: app  # noqa: E731  # mypy checks that the app does
CACHE = None  # grimp would leave a folder


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("tui", cache_dir=CACHE)
    above = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while bottom := {module for module, below in above.items() if not below & above.keys()}:
        above = {module: below for module, below in above.items() if module not in bottom}
    assert sorted(above) == []
