"""The account in the app, and the forms that its settings are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.svc.conftest import Svc
from tests.tui.settings.test_settings import said, to, typed
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.drafts import Drafts
from tui.screens.settings.form import Field, FormDrafts, SettingsForm

__all__ = ["project"]
Open = Callable[..., SvcApp]


async def test_the_account(project: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 60)) as pilot:
        await settle(pilot)
        text = await press(pilot, "a")
        assert "Sessions 1" in text and "● this session" in text and "this one" not in text
        own = [row for row in text.splitlines() if "device  ● " in row or "✓ active   ● " in row]
        assert len(own) == 2 and all("in use now" in row for row in own)
        assert "organisations" in text and ":auth key list" in text and ":doc list" in text
        await to(pilot, "list", "org list")
        await press(pilot, "enter")
        text = await sees(pilot, "no organisations; make one")
        assert "Tokens for scripts 0" in text and "Devices 1" in text and "✓ active" in text
        await to(pilot, "token", "")
        assert "settings?tab=tokens" in await sees(pilot, "─ a token ─")
        text = await press(pilot, "a")
        assert "works once, for ten minutes" in text
        await press(pilot, "escape")
        devices = json.loads(said("auth", "device", "list", "--json", "id,name"))
        await to(pilot, "device", devices[0]["id"])
        await press(pilot, "e")
        await typed(pilot, "My desk")
        await sees(pilot, "is now called My desk", "✓ active", "My desk  ")
        await to(pilot, "device", devices[0]["id"])
        await press(pilot, "x")
        assert "nothing was revoked" in await typed(pilot, "desk")
        await press(pilot, "x")
        await typed(pilot, "My desk")
    assert alice("repo", "list").code == 4


def test_a_form_marks_what_is_changed() -> None:
    form = SettingsForm((Field("name", "name"),), lambda name, value: "" if value else "needs a value")
    form.show({"name": "a"})
    form.set("name", "b")
    assert form.changed == {"name": "b"}
    form.set("name", "a")
    assert form.changed == {}
    form.set("name", "")
    assert form.faults() == {"name": "needs a value"}
    form.set("name", "c")
    form.show({"name": "c"})
    assert form.changed == {}


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'{"General": 3}', b'{"General": {"name": '])
def test_a_draft_that_cannot_be_read_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "draft.md").write_bytes(data)
    assert FormDrafts(Drafts(tmp_path), "draft").of("General") == {}
