"""Devices and their pairing, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localstore.core.encoding import b64u
from localstore.core.identity.keys import sign_registration
from localstore.core.identity.pairing import parse
from tests.relay.auth.people import Device
from tests.relay.histories import ok
from tests.relay.world import Named, Try, World, name

DEVICES = "/api/v1/devices/{user_id}"
PAIR = f"{DEVICES}/pair"


def _begin(world: World) -> tuple[str, Device, dict[str, Any]]:
    """(the address of pairing, a new device, what it sends when it scanned a new code)."""
    url, device = f"/api/v1/devices/{world.who.id}/pair", Device(world.relay.url)
    code = ok(world.http.post(f"{url}/generate", json={}))
    return url, device, {"qr": code["qr"], "device": {"name": name(), "public_key": b64u(device.key.public)}}


def _scan(world: World) -> Try:
    url, _, scan = _begin(world)
    return Try(f"{url}/process", scan)


def _complete(world: World) -> Try:
    url, device, scan = _begin(world)
    step = ok(world.http.post(f"{url}/process", json=scan))
    statement = b64u(sign_registration(device.key, world.relay.url, world.who.id))
    body = {"pairing_id": step["pairing_id"], "sas_confirmed": True, "signature": statement}
    return Try(f"{url}/complete", body)


def _revoke(world: World) -> Try:
    act = _complete(world)
    device = ok(world.http.post(act.path, json=act.json))
    return Try(f"/api/v1/devices/{world.who.id}/{device['id']}")


def _drawn_on_the_page(world: World) -> str:
    """The text of a code that the page shows to the browser's account, scanned and confirmed by a new
    device."""
    shown = world.browser.post("/settings/devices").text
    qr = shown.partition('name="qr" value="')[2].partition('"')[0]
    text, device = parse(qr), Device(world.relay.url)
    url = f"/api/v1/devices/{text.account}/pair"
    statement = b64u(sign_registration(device.key, world.relay.url, text.account))
    with world.relay.client() as new:
        scanned = {"name": name(), "public_key": b64u(device.key.public)}
        ok(new.post(f"{url}/process", json={"qr": qr, "device": scanned}))
        confirmed = {"pairing_id": text.pairing_id, "sas_confirmed": True, "signature": statement}
        ok(new.post(f"{url}/complete", json=confirmed))
    return qr


def _confirm_on_the_page(world: World) -> Try:
    form = {"qr": _drawn_on_the_page(world), "answer": "same"}
    return Try("/settings/devices/pair", data=form, http=world.browser)


def _revoke_on_the_page(world: World) -> Try:
    confirm = _confirm_on_the_page(world)
    page = world.browser.post(confirm.path, data=confirm.data).text
    key = page.rpartition('action="/settings/devices/')[2].partition("/")[0]
    return Try(f"/settings/devices/{key}/revoke", http=world.browser)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{PAIR}/generate"): lambda world: Try(f"/api/v1/devices/{world.who.id}/pair/generate", {}),
    ("POST", f"{PAIR}/process"): _scan,
    ("POST", f"{PAIR}/complete"): _complete,
    ("DELETE", f"{DEVICES}/{{device_id}}"): _revoke,
    ("POST", "/settings/devices"): lambda world: Try("/settings/devices", http=world.browser),
    ("POST", "/settings/devices/pair"): _confirm_on_the_page,
    ("POST", "/settings/devices/{id}/revoke"): _revoke_on_the_page,
}
