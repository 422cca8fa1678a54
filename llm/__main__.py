"""The command `python -m llm PORT`: starts the keeper of the server on a port (`llm.keeper`)."""

from __future__ import annotations

import sys

from llm.keeper import main

sys.exit(main(sys.argv[1:]))
