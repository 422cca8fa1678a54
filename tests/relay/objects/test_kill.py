"""A writer that is killed loses nothing it acknowledged (the long form is scripts/attack/store.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def test_nothing_acknowledged_is_lost_by_kill(tmp_path):
    path = Path(__file__).parents[3] / "scripts" / "attack" / "store.py"
    spec = importlib.util.spec_from_file_location("attack_store", path)
    assert spec is not None
    assert spec.loader is not None
    attack = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(attack)
    assert attack.campaign(3, tmp_path) > 3
