"""The quickstart shows what a person sees."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scripts.tour import COLUMNS, in_terminal


def test_a_command_of_the_tour_writes_to_a_terminal(tmp_path: Path) -> None:
    asked = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns); sys.exit(3)"
    code, said = in_terminal([sys.executable, "-c", asked], tmp_path, dict(os.environ))
    assert (code, said) == (3, f"True {COLUMNS}\n")
