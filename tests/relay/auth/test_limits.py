"""Guessing and spraying meet a wall; and a node that allows less."""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher
from sqlalchemy import update

from localstore.core.identity.device_grant import new_user_code
from relay.db.schema.account import account
from tests.relay.auth.people import PASSWORD


@pytest.fixture(scope="module")
def relay_variables():
    """One proxy before it, whose word on where somebody comes from is taken."""
    return {"RUST_LOG": "off", "TR_DEVICE_KEY_SIGN_IN": "off", "TR_PROXY_HOPS": "1"}


@pytest.fixture
def browser(browser):
    """`browser(address)`: somebody who comes from there."""

    def make(address: str = "198.51.100.1"):
        one = browser()
        one.headers["X-Forwarded-For"] = address
        return one

    return make


def forget_the_cost(relay, handle):
    """Keep the password of this account as a hash that is checked at once; a hash names its own cost."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)

    async def work():
        async with relay.node.db.write() as tx:
            await tx.run(update(account).where(account.c.handle == handle).values(password_hash=cheap))

    relay.run(work())


def places(start: int, many: int) -> list[str]:
    return [f"203.0.{start + n // 250}.{n % 250 + 1}" for n in range(many)]


def test_guessing_a_password_is_stopped_even_with_the_right_one_at_last(browser, name):
    handle = name()
    browser().sign_up(handle)
    guesses = [browser().sign_in(handle, f"wrong guess {n}").status_code for n in range(12)]
    assert guesses[:10] == [401] * 10
    assert guesses[10:] == [429] * 2
    refused = browser().sign_in(handle)
    assert refused.status_code == 429
    assert "wait" in refused.text or "try again" in refused.text


def test_nobody_is_locked_out_from_elsewhere(browser, name):
    """Guesses at a person's password from another address never reach the person."""
    handle, home, attacker = name(), "198.51.100.9", "203.0.113.66"
    browser(home).sign_up(handle)
    guesses = [browser(attacker).sign_in(handle, f"wrong guess {n}").status_code for n in range(30)]
    assert guesses == [401] * 10 + [429] * 20
    assert browser(home).sign_in(handle).status_code == 303
    assert browser("198.51.100.10").sign_in(handle).status_code == 303, "nor at a place where they never were"


def test_many_addresses_guess_no_faster_without_end_and_lock_nobody_out_at_home(relay, browser, name):
    handle, home = name(), "198.51.100.20"
    browser(home).sign_up(handle)
    forget_the_cost(relay, handle)
    guesses = [browser(place).sign_in(handle, "wrong guess 1").status_code for place in places(1, 130)]
    assert guesses[:100] == [401] * 100
    assert guesses[100:].count(429) > 20, "a slow machine is given some back, 100 in an hour"
    refused = browser("203.0.200.1").sign_in(handle)
    assert (refused.status_code, "where you did before" in refused.text) == (429, True)
    assert browser(home).sign_in(handle).status_code == 303, "where they signed in before"
    assert browser("203.0.200.2").sign_in(name()).status_code == 401, "nor is anybody else"


def test_who_is_stopped_is_told_when_to_come_back(browser, name):
    """On the page of a browser as in the answer to a program."""
    one, handle = browser().sign_up(name()), name()
    page = [one.sign_in(handle, f"wrong guess {n}") for n in range(12)][-1]
    guess = {"user_code": new_user_code(), "fingerprint": "AAAA", "decision": "deny"}
    answer = [one.post("/api/v1/auth/cli/approve", json=guess) for _ in range(12)][-1]
    for refused, limit in ((page, 10), (answer, 10)):
        assert refused.status_code == 429
        wait = int(refused.headers["retry-after"])
        assert 0 < wait <= 600
        assert refused.headers["ratelimit"] == f'"bucket";r=0;t={wait}'
        assert refused.headers["ratelimit-policy"] == f'"bucket";q={limit};w=600'
        assert (refused.headers["ratelimit-limit"], refused.headers["ratelimit-reset"]) == (
            str(limit),
            str(wait),
        )


def test_spraying_many_accounts_is_stopped_by_address(browser, name):
    sprayed = [browser("203.0.113.7").sign_in(name(), PASSWORD).status_code for _ in range(45)]
    assert 429 in sprayed
    assert sprayed[-1] == 429


def test_good_sign_ins_count_nothing(browser, name):
    one = browser()
    answer = one.post("/auth/sign-up", data={"handle": name(), "password": PASSWORD})
    assert answer.status_code == 303


def test_guessing_user_codes_is_stopped(browser, name):
    one = browser().sign_up(name())
    guess = {"fingerprint": "AAAA", "decision": "approve"}
    answers = [
        one.post("/api/v1/auth/cli/approve", json=guess | {"user_code": new_user_code()}) for _ in range(12)
    ]
    assert [answer.status_code for answer in answers] == [404] * 10 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) > 0
    assert one.get("/cli/authorize", params={"user_code": new_user_code()}).status_code == 429


def test_a_node_may_forbid_the_sign_in_by_device_key(device, name):
    refused = device().sign_in(name())
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
