"""`relay account list`: who has an account, when they signed in, what they keep; in pages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from relay.run import cli
from tests.relay.auth.people import Browser
from tests.relay.conftest import Relay
from tests.relay.histories import create
from tests.relay.http.test_pack_http import pack_of, signed

Listing = Callable[..., dict[str, Any]]


@pytest.fixture
def listing(relay: Relay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Listing:
    """The JSON of `relay account list` with these options."""
    monkeypatch.setenv("DATABASE_URL", relay.node.config.database_url)

    def run(*words: str) -> dict[str, Any]:
        assert cli.main(["account", "list", *words, "--data", str(relay.folder), "--json"]) == 0
        return dict(json.loads(capsys.readouterr().out))

    return run


def test_an_account_with_what_it_keeps_and_when_it_signed_in(
    relay: Relay, client: Any, account: Any, listing: Listing, capsys: Any
) -> None:
    mira = account("mira")
    repo = create(client(mira), mira, "first")
    data = os.urandom(3000)
    assert repo.http.post(f"{repo.url}/packs", **signed(b"".join(pack_of(data).parts()))).status_code == 201
    (listed,) = [one for one in listing()["items"] if one["account"] == "mira"]
    assert (listed["kind"], listed["state"], listed["repositories"]) == ("user", "active", 1)
    assert listed["bytes"] == len(data)
    assert listed["last_sign_in"] >= listed["created_at"]
    assert client(mira).delete(repo.url).is_success
    (listed,) = [one for one in listing()["items"] if one["account"] == "mira"]
    assert (listed["bytes"], listed["repositories"]) == (len(data), 0)  # it can be restored

    assert cli.main(["account", "suspend", "mira", "--data", str(relay.folder)]) == 0
    capsys.readouterr()
    assert cli.main(["account", "list", "--data", str(relay.folder)]) == 0
    table = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    (line,) = [cells for cells in table if cells[0] == "mira"]
    named = dict(zip(table[0], line, strict=True))
    assert (named["STATE"], named["BYTES"], named["KIND"]) == ("suspended", str(len(data)), "user")


def test_pages_hold_each_account_once_also_guests_without_a_handle(
    relay: Relay, account: Any, listing: Listing, capsys: Any
) -> None:
    made = {account().handle for _ in range(5)}
    guest = Browser(relay.url)
    made.add(guest.post("/auth/guest-login").json()["user_id"])
    guest.close()
    found, following, pages = [], None, 0
    while pages == 0 or following:
        answer = listing("--limit", "2", *(["--after", following] if following else []))
        assert len(answer["items"]) <= 2
        found += [one["account"] for one in answer["items"]]
        following, pages = answer["next"], pages + 1
    assert len(found) == len(set(found)) and made <= set(found) and pages == (len(found) + 1) // 2
    assert {one["kind"] for one in listing("--kind", "guest")["items"]} == {"guest"}
    assert cli.main(["account", "list", "--limit", "1", "--kind", "user", "--data", str(relay.folder)]) == 0
    hint = capsys.readouterr().err
    assert hint.startswith("relay: there are more: relay account list --kind user --after ")


@pytest.mark.parametrize("words", [("--limit", "0"), ("--limit", "1001")])
def test_a_page_has_a_bound(relay: Relay, words: tuple[str, ...], capsys: Any) -> None:
    assert cli.main(["account", "list", *words, "--data", str(relay.folder)]) == 2
    assert capsys.readouterr().err == "relay: --limit is 1 to 1000\n"


@pytest.mark.parametrize(
    "words",
    [("account", "add", "a\udcff"), ("quota", "a\udcff"), ("account", "list", "--after", "\x1b[2J"),
     ("repo", "kill", "a/\udcff")],
)  # fmt: skip
def test_a_name_that_no_database_keeps_is_refused_in_a_sentence(
    relay: Relay, words: tuple[str, ...], capsys: Any
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([*words, "--data", str(relay.folder)])
    assert end.value.code == 2
    assert "is not a name" in capsys.readouterr().err
