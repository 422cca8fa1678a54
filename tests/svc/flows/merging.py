"""Two people who edit one file, against the model relay."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from svc.flows import push
from svc.flows.common import begin
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

TEXT = "import os\n\ntimeout = 30\nretries = 3\n\n\ndef main():\n    return timeout\n"
BOTH = TEXT.replace("import os\n", "import os\nimport re\n").replace("return timeout", "return timeout * 2")


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def people(relay: ModelRelay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Place, Place]:
    monkeypatch.setattr(push, "PAUSE", 0.0)
    return people_with(relay, tmp_path)


def people_with(relay: ModelRelay, folder: Path) -> tuple[Place, Place]:
    """Two people who have `app.py`."""
    ann, bob = Place(folder, relay, "ann"), Place(folder, relay, "bob")
    ann.write("app.py", TEXT)
    ann.push()
    bob.pull()
    return ann, bob


def live(place: Place) -> None:
    """Send without sealing."""
    with place.device() as device:
        begin(device)
        compose(device, device.scan())
        assert not send(device).lost


def timeout(value: int) -> str:
    return TEXT.replace("30", str(value))


def one_side(text: str) -> str:
    return text.replace("import os\n", "import os\nimport re\n")


def other_side(text: str) -> str:
    return text.replace("return timeout", "return timeout * 2")


def copies(place: Place) -> dict[str, str]:
    return {path: data.decode() for path, data in place.files().items() if ".sync-conflict-" in path}


def in_conflict(place: Place, theirs: str, mine: str) -> None:
    """`app.py` is theirs, and the one copy holds mine."""
    assert place.read("app.py").decode() == theirs
    assert list(copies(place).values()) == [mine]
