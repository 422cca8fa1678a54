"""The edition and version of this build. The build script writes the constants of this module; nothing at run
time changes them.

There are three editions: `self-hosted-community`, `self-hosted-business` and `managed`. A node refuses to
start if TR_EDITION names another edition than this build (service specification, Operation).
"""

from __future__ import annotations

from typing import Final, Literal

Edition = Literal["self-hosted-community", "self-hosted-business", "managed"]

EDITION: Final[Edition] = "self-hosted-community"
VERSION: Final = "0.1.0"
COMMIT: Final = "unknown"
BUILT_AT: Final = "1970-01-01T00:00:00Z"
MIN_CLIENT: Final = "0.1.0"
API_VERSION: Final = 1
SOURCE_URL: Final = ""  # empty: the node serves its own source at /source.tar.gz
