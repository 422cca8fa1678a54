"""What a channel refuses, and what ends the whole socket."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from localstore.core.errors import SvcError, TooLarge
from localstore.core.model import limits
from localstore.core.model.sync import Live, Opened, Refused
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository
from tests.relay.live.copies import Copies


def test_what_is_no_business_of_a_channel_is_refused_by_code(
    relay: Relay, repo: Repository, copies: Copies, account: Callable[..., Account]
) -> None:
    ann, bob = copies(repo.owner), copies()
    stranger = account()
    line = ann.socket
    assert line is not None

    def refusal(**named: object) -> tuple[int, str]:
        body = {
            "repo_id": repo.id,
            "branch": "main",
            "replica": ann.replica,
            "device_key_id": ann.who.key.id,
            **named,
        }
        line.open(9, **body)  # type: ignore[arg-type]
        told = ann.until(Refused)
        return told.channel, told.code

    assert refusal(branch="nothing") == (9, "not_found")
    assert refusal(branch="") == (9, "not_found")
    assert refusal(repo_id="0" * 20) == (9, "not_found")
    assert refusal(repo_id="../../etc") == (9, "not_found")
    assert refusal(replica=bob.replica) == (9, "replica_unknown")
    assert refusal(replica=0) == (9, "invalid")
    assert refusal(device_key_id=bob.who.key.id) == (9, "forbidden")
    assert refusal(device_key_id=stranger.key.id) == (9, "forbidden")
    line.send_updates(9, 4, ann.batch())
    told = ann.until(Refused)
    assert (told.channel, told.code, told.id) == (9, "channel_unknown", 4)
    line.send_updates(1, 5, bob.batch(bob.create("b.txt", b"x")))
    told = ann.until(Refused)
    assert (told.channel, told.code, told.id) == (1, "invalid", 5)
    line.send_here(9, "a.txt")
    assert ann.until(Refused).code == "channel_unknown"
    for path in ("../x", "a/../b", "/etc", "a\nb", "x" * 1024 + "/y"):
        line._socket.send(json.dumps({"type": "here", "channel": 1, "path": path[:1024]}))
        assert ann.until(Refused).channel == 1
    assert ann.say(ann.create("a.txt", b"fine"))[0].result == "ok", "the socket goes on"
    bob.reach(1)


def test_an_update_that_was_not_signed_by_the_device_is_refused(copies: Copies) -> None:
    ann, bob = copies(), copies()
    made = msgspec.structs.replace(ann.create("a.txt", b"x"), path="b.txt")
    assert ann.socket is not None
    ann.socket.send_updates(1, 3, ann.batch(made))
    assert (told := ann.until(Refused)).code == "signature_invalid" and told.id == 3
    assert list(bob.heard(0.2)) == []


def test_a_repeated_update_has_its_first_answer_and_is_told_once(copies: Copies) -> None:
    ann, bob = copies(), copies()
    made = ann.create("a.txt", b"x")
    first = ann.say(made)
    assert ann.say(made) == first == ann.post(made)
    bob.reach(1)
    assert [one for one in bob.heard(0.2) if isinstance(one, Live)] == []


def test_a_socket_has_so_many_channels(copies: Copies, repo: Repository) -> None:
    ann = copies(repo.owner)
    assert ann.socket is not None
    for number in range(2, limits.CHANNELS + 1):
        ann.socket.open(number, repo.id, "main", ann.replica, ann.who.key.id)
    for _ in range(2, limits.CHANNELS + 1):
        ann.until(Opened)
    ann.socket.open(9999, repo.id, "main", ann.replica, ann.who.key.id)
    assert (told := ann.until(Refused)).channel == 9999 and told.code == "invalid"
    ann.socket.close_channel(7)
    ann.socket.open(9999, repo.id, "main", ann.replica, ann.who.key.id)
    assert ann.until(Opened).channel == 9999
    ann.socket.open(9999, repo.id, "main", ann.replica, ann.who.key.id)
    assert ann.until(Opened).channel == 9999, "a number may be opened anew"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"type":"open","channel":1}', "invalid"),
        (
            '{"type":"open","channel":-1,"repo_id":"a","branch":"b","replica":1,"device_key_id":"k"}',
            "invalid",
        ),
        ('{"type":"updates","channel":1,"id":1,"batch":{"device_key_id":"k"}}', "invalid"),
        ('{"type":"updates","channel":1', "malformed"),
        (
            '{"type":"open","channel":2,"repo_id":"a","branch":"\\ud800","replica":1,"device_key_id":""}',
            "malformed",
        ),
        ('{"type":"here","channel":1,"path":"a\\u0000b"}', "invalid"),
        ('{"type":"here","channel":1,"state":"dance"}', "invalid"),
        ('{"type":"here","channel":1,"line":-4}', "invalid"),
        ('{"type":"here","channel":1,"turn":"%s"}' % ("x" * 300), "invalid"),
        ('{"type":"live","channel":1,"after":0,"seq":9,"rows":[],"updates":[]}', "invalid"),
        ('{"type":"close","channel":1,"x":"%s"}' % ("x" * 5000), "too_large"),
    ],
)
def test_half_a_message_ends_the_socket_with_the_reason(copies: Copies, text: str, code: str) -> None:
    ann = copies()
    assert ann.socket is not None
    ann.socket._socket.send(text)
    with pytest.raises(SvcError) as caught:
        list(ann.heard(PATIENCE))
    assert caught.value.code == code


def test_a_batch_that_is_too_long_for_a_socket_is_not_sent(copies: Copies) -> None:
    ann = copies()
    many = [ann.create(f"{number}.txt", b"%d" % number) for number in range(200)]
    assert ann.socket is not None
    with pytest.raises(TooLarge):
        ann.socket.send_updates(1, 1, ann.batch(*many))
    assert {answer.result for answer in ann.post(*many)} == {"ok"}
