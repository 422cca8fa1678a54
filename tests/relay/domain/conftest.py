"""Somebody with an account, and what signs their requests."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.relay.conftest import Account


@pytest.fixture
def owner(account: Callable[..., Account]) -> Account:
    return account()


@pytest.fixture
def http(owner: Account, client: Callable[..., httpx.Client]) -> httpx.Client:
    return client(owner)
