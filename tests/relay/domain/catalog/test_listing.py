"""The listing of a repository: one, public, its owner's; screenshots that are hidden stay hidden."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.relay.conftest import Account
from tests.relay.histories import create, ok

Client = Callable[..., httpx.Client]


@pytest.fixture(scope="module")
def relay_variables() -> dict[str, str]:
    return {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_SOCIAL_ENABLED": "on"}


def test_a_listing_is_one_row_of_a_public_repository(account: Callable[..., Account], client: Client) -> None:
    owner, other = account(), account()
    mine, theirs, nobody = client(owner), client(other), client()
    repo = create(mine, owner, "notes")
    url = f"{repo.url}/listing"
    assert mine.get(url).status_code == 404
    refused = mine.put(url, json={"name": "Notes"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_listable")
    ok(mine.patch(repo.url, json={"visibility": "public"}))

    made = ok(
        mine.put(url, json={"name": "Notes", "category": "Writing", "screenshots": ["a.png", "s/b.png"]})
    )
    again = ok(mine.put(url, json={"name": "Notes 2", "readme_images": "all"}))
    assert again["id"] == made["id"]
    assert (again["name"], again["category"], again["screenshots"]) == ("Notes 2", None, [])
    assert again["readme_images"] == "all" and again["installable"] is False
    assert ok(nobody.get(url)) == again
    assert theirs.put(url, json={"name": "Theirs"}).status_code == 403
    assert theirs.delete(url).status_code == 403

    assert ok(mine.get(repo.url))["listing_id"] == made["id"]
    assert ok(nobody.get(f"/api/v1/public/app/{owner.handle}/notes"))["listing_id"] == made["id"]
    theirs.put(f"{repo.url}/star").raise_for_status()
    counts = ok(nobody.get(f"/api/v1/social/{made['id']}"))
    assert counts == {"listing_id": made["id"], "stars": 1, "watchers": 1}

    ok(mine.patch(repo.url, json={"visibility": "private"}))
    missing = nobody.get(f"/api/v1/social/{'0' * 32}")
    hidden = nobody.get(f"/api/v1/social/{made['id']}")
    assert (hidden.status_code, hidden.content) == (404, missing.content)
    assert nobody.get(url).status_code == 404

    assert mine.delete(url).status_code == 204
    assert mine.delete(url).status_code == 404
    assert ok(mine.get(repo.url))["listing_id"] is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "a\nb"},
        {"name": "\u202eseton"},
        {"name": "x" * 101},
        {"name": "a", "category": " "},
        {"name": "a", "screenshots": ["../x.png"]},
        {"name": "a", "screenshots": ["a.exe"]},
        {"name": "a", "screenshots": ["javascript:alert(1)"]},
        {"name": "a", "screenshots": ["a.png", "a.png"]},
        {"name": "a", "screenshots": [f"{n}.png" for n in range(11)]},
        {"name": "a", "readme_images": "some"},
        {"name": "a", "price": 1},
    ],
)
def test_what_no_listing_can_be(
    account: Callable[..., Account], client: Client, body: dict[str, object]
) -> None:
    owner = account()
    http = client(owner)
    repo = create(http, owner, "x")
    ok(http.patch(repo.url, json={"visibility": "public"}))
    assert http.put(f"{repo.url}/listing", json=body).status_code == 422
    assert http.get(f"{repo.url}/listing").status_code == 404


def test_a_screenshot_at_a_private_path_is_for_writers(
    account: Callable[..., Account], client: Client
) -> None:
    owner = account()
    http = client(owner)
    repo = create(http, owner, "y")
    ok(http.patch(repo.url, json={"visibility": "public"}))
    ok(http.put(f"{repo.url}/paths", json={"path": "secret", "visibility": "private"}))
    ok(http.put(f"{repo.url}/listing", json={"name": "Y", "screenshots": ["secret/a.png", "b.png"]}))
    assert ok(http.get(f"{repo.url}/listing"))["screenshots"] == ["secret/a.png", "b.png"]
    assert ok(client().get(f"{repo.url}/listing"))["screenshots"] == ["b.png"]
