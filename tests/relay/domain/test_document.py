"""Documents: edited by several at once, the owner's alone, within bounds, and kept whole."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from localstore.core.document import edit
from localstore.core.document.content import encode
from localstore.core.document.document import YjsDocument
from localstore.core.model import limits
from localstore.core.model.limits import DOCUMENT_BYTES, DOCUMENT_PARTS
from relay.db.schema.document import document, document_update
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok

Client = Callable[..., httpx.Client]
Someone = Callable[..., Account]
DOCUMENTS = "/api/v1/documents"


def _create(http: httpx.Client, content: Any = None, title: str = "Plan") -> str:
    return str(ok(http.post(DOCUMENTS, json={"title": title, "content": content}))["id"])


def _put(http: httpx.Client, id: str, content: Any, **body: Any) -> httpx.Response:
    return http.put(f"{DOCUMENTS}/{id}", json={"content": content, **body})


def _content(http: httpx.Client, id: str) -> Any:
    return ok(http.get(f"{DOCUMENTS}/{id}"))["content"]


def _updates(relay: Relay, id: str) -> list[bytes]:
    async def stored() -> list[bytes]:
        statement = select(document_update.c.operations).where(document_update.c.document_id == id)
        async with relay.node.db.read() as tx:
            return [bytes(row[0]) for row in await tx.all(statement.order_by(document_update.c.number))]

    return list(relay.run(stored()))


def test_a_document_is_made_read_listed_and_deleted(owner: Account, http: httpx.Client) -> None:
    content = {"b": [1, 2.5, None, True], "a": "one two", "": {}}
    made = ok(http.post(DOCUMENTS, json={"title": "Plan", "content": content}))
    assert made["content"] == content
    assert list(made["content"]) == ["", "a", "b"]
    assert (made["title"], made["mode"], made["owner"]) == ("Plan", 2, owner.id)
    assert (made["archived"], made["frontier"], made["at_head"]) == (False, "1", True)
    url = f"{DOCUMENTS}/{made['id']}"
    assert ok(http.get(url)) == made
    del made["content"]
    assert ok(http.get(DOCUMENTS))["items"] == [made]
    assert http.delete(url).status_code == 204
    assert http.get(url).status_code == 404
    assert http.delete(url).status_code == 404
    assert ok(http.get(DOCUMENTS))["items"] == []


def test_two_who_edit_the_same_version_both_keep_what_they_changed(relay: Relay, http: httpx.Client) -> None:
    id = _create(http, {"text": "one two three", "rows": [1, 2, 3], "mine": 0, "yours": 0})
    mine = {"text": "ONE two three", "rows": [0, 1, 2, 3], "mine": 1, "yours": 0}
    yours = {"text": "one two THREE", "rows": [1, 2, 3, 4], "mine": 0, "yours": 1}
    ok(_put(http, id, mine, base="1"))
    merged = ok(_put(http, id, yours, base="1"))
    both = {"text": "ONE two THREE", "rows": [0, 1, 2, 3, 4], "mine": 1, "yours": 1}
    assert merged["content"] == both
    assert merged["frontier"] == "3"
    assert _content(http, id) == both
    again = ok(_put(http, id, both | {"mine": 2}, base="3"))
    assert again["content"] == both | {"mine": 2}
    assert YjsDocument(9, _updates(relay, id)).content() == again["content"]
    history = ok(http.get(f"{DOCUMENTS}/{id}/history"))["items"]
    assert [(one["number"], one["first"], one["base"]) for one in history] == [
        (4, 4, 3),
        (3, 3, 1),
        (2, 2, 1),
        (1, 1, 0),
    ]
    pages = ok(http.get(f"{DOCUMENTS}/{id}/history", params={"limit": 3}))
    rest = http.get(f"{DOCUMENTS}/{id}/history", params={"limit": 3, "cursor": pages["next_cursor"]})
    assert [one["number"] for one in ok(rest)["items"]] == [1]


def test_a_put_is_a_difference_and_not_a_replacement(relay: Relay, http: httpx.Client) -> None:
    content = {"rows": [{"id": at, "text": f"row number {at}"} for at in range(500)]}
    id = _create(http, content)
    content["rows"][250]["text"] = "row number 250 and a word"
    ok(_put(http, id, content))
    first, second = _updates(relay, id)
    assert len(second) < 100 < len(first)
    assert _content(http, id) == content


def test_without_a_base_the_content_is_what_was_sent(http: httpx.Client) -> None:
    id = _create(http, {"a": 1})
    ok(_put(http, id, {"b": 1}))
    assert _content(http, id) == {"b": 1}
    unchanged = ok(_put(http, id, {"b": 1}))
    assert unchanged["frontier"] == "2"
    renamed = ok(_put(http, id, {"b": 1}, title="Other"))
    assert (renamed["title"], renamed["frontier"]) == ("Other", "3")


def test_if_match_names_what_the_document_is(http: httpx.Client) -> None:
    id = _create(http, 1)
    url = f"{DOCUMENTS}/{id}"
    tag = http.get(url).headers["etag"]
    assert http.get(url, headers={"If-None-Match": tag}).status_code == 304
    changed = http.put(url, json={"content": 2}, headers={"If-Match": f'"x", {tag}'})
    assert changed.status_code == 200
    assert changed.headers["etag"] == http.get(url).headers["etag"] != tag
    for stale in (tag, f"W/{changed.headers['etag']}", '"x"', ""):
        refused = http.put(url, json={"content": 3}, headers={"If-Match": stale})
        assert refused.status_code == 412, stale
        assert refused.json()["code"] == "document_moved"
    assert _content(http, id) == 2
    assert http.put(url, json={"content": 3}, headers={"If-Match": "*"}).status_code == 200
    tag = http.get(url).headers["etag"]
    ok(http.post(f"{url}/archive"))
    ok(http.post(f"{url}/unarchive"))
    assert http.put(url, json={"content": 4}, headers={"If-Match": tag}).status_code == 412


def test_every_answer_with_a_document_names_its_tag(http: httpx.Client) -> None:
    answer = http.post(DOCUMENTS, json={"title": "Plan", "content": 1})
    assert answer.status_code == 201
    url = f"{DOCUMENTS}/{answer.json()['id']}"
    for act in ("/archive", "/archive", "/unarchive"):
        assert answer.headers["etag"] == http.get(url).headers["etag"]
        answer = http.post(url + act)
    changed = http.put(url, json={"content": 2}, headers={"If-Match": answer.headers["etag"]})
    assert changed.status_code == 200


def test_an_archived_document_takes_no_writes(http: httpx.Client) -> None:
    id = _create(http, {"a": 1})
    url = f"{DOCUMENTS}/{id}"
    for _ in range(2):
        assert ok(http.post(f"{url}/archive"))["archived"] is True
    refused = _put(http, id, {"a": 2})
    assert (refused.status_code, refused.json()["code"]) == (409, "document_archived")
    assert [one["id"] for one in ok(http.get(DOCUMENTS, params={"archived": "true"}))["items"]] == [id]
    assert ok(http.get(DOCUMENTS, params={"archived": "false"}))["items"] == []
    assert _content(http, id) == {"a": 1}
    for _ in range(2):
        assert ok(http.post(f"{url}/unarchive"))["archived"] is False
    ok(_put(http, id, {"a": 2}))
    ok(http.post(f"{url}/archive"))
    assert http.delete(url).status_code == 204


def test_others_are_told_as_if_it_were_not_there(
    http: httpx.Client, account: Someone, client: Client
) -> None:
    id = _create(http, {"a": 1})
    other = client(account())
    for url in (f"{DOCUMENTS}/{id}", f"{DOCUMENTS}/none"):
        answers = [
            other.get(url),
            other.get(f"{url}/history"),
            other.put(url, json={"content": 1}),
            other.delete(url),
            other.post(f"{url}/archive"),
            other.post(f"{url}/unarchive"),
        ]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1
    assert ok(other.get(DOCUMENTS))["items"] == []
    assert client().get(f"{DOCUMENTS}/{id}").status_code == 401


def test_a_guest_has_documents(account: Someone, client: Client) -> None:
    guest = client(account(kind="guest"))
    id = _create(guest, {"a": 1})
    ok(_put(guest, id, {"a": 2}))
    assert _content(guest, id) == {"a": 2}


@pytest.mark.parametrize("mode", [1, 3, 4, 5])
def test_another_mode_is_refused_by_its_name(http: httpx.Client, mode: int) -> None:
    refused = http.post(DOCUMENTS, json={"title": "x", "mode": mode})
    assert (refused.status_code, refused.json()["code"]) == (422, "document_mode")
    assert f"mode {mode}" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("x" * DOCUMENT_BYTES, 413),
        ([0] * DOCUMENT_PARTS, 413),
        ({"a": 1 << 60}, 422),
    ],
)
def test_content_beyond_a_bound_is_refused(http: httpx.Client, content: Any, status: int) -> None:
    assert http.post(DOCUMENTS, json={"title": "x", "content": content}).status_code == status
    id = _create(http, 1)
    assert _put(http, id, content).status_code == status
    assert _content(http, id) == 1


def test_depth_is_refused_whatever_it_is(http: httpx.Client) -> None:
    for depth, status in ((34, 413), (900, 413), (100_000, 400)):
        body = b'{"title":"x","content":' + b"[" * depth + b"]" * depth + b"}"
        answer = http.post(DOCUMENTS, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == status, depth


def test_two_edits_that_together_exceed_a_bound_are_not_both_taken(http: httpx.Client) -> None:
    id = _create(http, {})
    half = "x " * (DOCUMENT_BYTES // 3)
    ok(_put(http, id, {"a": half}, base="1"))
    assert _put(http, id, {"b": half}, base="1").status_code == 413
    assert _content(http, id) == {"a": half}


def test_a_base_that_there_is_not_is_refused(http: httpx.Client) -> None:
    id = _create(http, 1)
    assert _put(http, id, 2, base="2").status_code == 422
    for base in ("0", "x", "1" * 30):
        assert _put(http, id, 2, base=base).status_code == 422


def test_old_updates_become_one_snapshot(
    relay: Relay, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit, "DOCUMENT_UPDATES", 5)
    id = _create(http, {"n": [0], "text": "some words"})
    for number in range(1, 19):
        ok(_put(http, id, {"n": list(range(number + 1)), "text": "some words"}, base=str(number)))
    history = ok(http.get(f"{DOCUMENTS}/{id}/history"))["items"]
    assert [one["number"] for one in history] == list(range(19, 9, -1))
    assert (history[-1]["first"], history[-2]["first"]) == (1, 11)
    wanted = {"n": list(range(19)), "text": "some words"}
    assert _content(http, id) == YjsDocument(9, _updates(relay, id)).content() == wanted
    gone = _put(http, id, {"n": [], "text": "some words"}, base="9")
    assert (gone.status_code, gone.json()["code"]) == (409, "document_base_gone")
    old = {"n": list(range(10)), "text": "some NEW words"}
    assert ok(_put(http, id, old, base="10"))["content"] == {"n": list(range(19)), "text": "some NEW words"}

    async def size() -> int:
        async with relay.node.db.read() as tx:
            return int(await tx.value(select(document.c.size).where(document.c.id == id)))

    stored = sum(map(len, _updates(relay, id)))
    assert relay.run(size()) == stored + len(encode(_content(http, id)))


def test_what_several_send_at_once_is_all_there(http: httpx.Client, owner: Account, client: Client) -> None:
    id = _create(http, {})
    clients = [client(owner) for _ in range(4)]

    def work(who: int) -> None:
        for number in range(5):
            while _put(clients[who], id, {f"{who}.{number}": 1}, base="1").status_code == 409:
                pass

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert _content(http, id) == {f"{who}.{number}": 1 for who in range(4) for number in range(5)}


def test_a_reader_gets_the_content_of_the_frontier_it_is_told(
    http: httpx.Client, owner: Account, client: Client
) -> None:
    """Also while others write: an edit on top of another content would undo theirs."""
    id, reader = _create(http, 1), client(owner)
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(lambda: [ok(_put(http, id, number)) for number in range(2, 102)])
        while not writing.done():
            seen = ok(reader.get(f"{DOCUMENTS}/{id}"))
            assert str(seen["content"]) == seen["frontier"]
    assert len(writing.result()) == 100


def test_an_account_has_bounds(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DOCUMENTS", 2)
    monkeypatch.setattr(limits, "DOCUMENTS_BYTES", 10_000)
    id = _create(http, "x " * 500)
    _create(http)
    refused = http.post(DOCUMENTS, json={"title": "x"})
    assert (refused.status_code, refused.json()["code"]) == (507, "quota_exceeded")
    assert _put(http, id, "y " * 5000).status_code == 507
    monkeypatch.setattr(limits, "DOCUMENT_STATE_BYTES", 3000)
    assert _put(http, id, "z " * 800).status_code == 507
    assert _content(http, id) == "x " * 500


def test_a_repeated_request_is_answered_as_the_first(http: httpx.Client) -> None:
    key = {"Idempotency-Key": "k1"}
    first = http.post(DOCUMENTS, json={"title": "x", "content": [1]}, headers=key)
    again = http.post(DOCUMENTS, json={"title": "x", "content": [1]}, headers=key)
    assert ok(first) == ok(again)
    assert len(ok(http.get(DOCUMENTS))["items"]) == 1
