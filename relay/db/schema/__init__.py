"""Every table of the database, in one module for each noun.

Times are integers in milliseconds, UTC. Digests are 32 raw bytes, seal ids are hex text, other ids are opaque
text. The migrations in `relay/migrations` make exactly these tables; a test compares the two. Each module
here is imported automatically, so `metadata` is complete wherever one table is used.
"""

from __future__ import annotations

import importlib
import pkgutil

from relay.db.schema.base import metadata as metadata

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

tables = metadata.tables  # by the name they have in the database
