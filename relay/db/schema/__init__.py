"""Every table, one module a noun. Times are integer milliseconds UTC, digests 32 raw bytes, seal ids hex
text, ids opaque text.

The migrations in `relay/migrations` make exactly these tables; a test compares the two. Each module of this
folder is imported here because it is there, so `metadata` is complete wherever one table is used.
"""

from __future__ import annotations

import importlib
import pkgutil

from relay.db.schema.base import metadata as metadata

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

tables = metadata.tables  # by the name they have in the database
