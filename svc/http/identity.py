"""The keys of this machine. Each SVC_HOME has an Ed25519 key, which signs, and an X25519 key, with which
others encrypt for this machine.

The secrets are stored in the OS keyring if it answers within two seconds, else in `device.json` (mode 0600).
The choice is made once and recorded in that file, so that later commands do not wait for a missing keyring.
Session files are encrypted for the X25519 key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ClientError, Invalid
from localstore.core.identity.keys import KEY_BYTES, DeviceKey, TransportKey
from svc.http.private_file import create_private, mark_private, read_private, write_private

KEYRING_SERVICE = "svc"
KEYRING_PATIENCE = 2.0  # seconds
FILE = "device.json"


class _KeyFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of `device.json`. `id` is the id of the device key. `secrets` has both secrets in base64url
    with a dot between them, or is "" if the keyring has them."""

    v: Literal[1]
    id: str
    kept: Literal["keyring", "file"]
    secrets: str = ""


class Identity(msgspec.Struct, frozen=True):
    """The keys of this machine, and where they are stored. `device` signs; `transport` decrypts what others
    encrypt for this machine."""

    device: DeviceKey
    transport: TransportKey
    kept: Literal["keyring", "file"]


def load_identity(home: Path) -> Identity:
    """Return the keys in `home`, which are created on first use. Raises ClientError if they are damaged or
    the keyring is locked."""
    return find_identity(home) or _make(home)


def store_identity(home: Path, device: DeviceKey) -> None:
    """Store this device key in the file `device.json` of the folder `home`, together with a new key for
    decryption. The keyring is not used."""
    secrets = f"{b64u(device.seed)}.{b64u(TransportKey.generate().secret)}"
    mark_private(home)
    write_private(home / FILE, msgspec.json.encode(_KeyFile(v=1, id=device.id, kept="file", secrets=secrets)))


def replace_identity(home: Path) -> Identity:
    """Create new keys in `home`. The old file is kept under a name that ends with the old key's id."""
    content = read_private(home / FILE)
    if content is not None:
        try:
            old = msgspec.json.decode(content, type=_KeyFile).id
        except msgspec.DecodeError:
            old = "damaged"
        (home / FILE).replace(home / f"{FILE}.{''.join(c for c in old if c.isalnum() or c in '-_')}")
    return load_identity(home)


def find_identity(home: Path) -> Identity | None:
    """Return the keys in `home`; None if there are none. Raises ClientError if they are damaged or the
    keyring is locked."""
    content = read_private(home / FILE)
    if content is None:
        return None
    try:
        key_file = msgspec.json.decode(content, type=_KeyFile)
        secrets = key_file.secrets if key_file.kept == "file" else _from_keyring(key_file.id)
        seed, _, transport = secrets.partition(".")
        device = DeviceKey.generate(unb64u(seed, KEY_BYTES))
        if device.id != key_file.id:
            raise Invalid("the key is not the one it is named for")
        return Identity(device, TransportKey.generate(unb64u(transport, KEY_BYTES)), key_file.kept)
    except (Invalid, msgspec.DecodeError):
        raise ClientError(
            f"the device key in {home / FILE} is damaged; move that file away and run: svc login"
        ) from None


def _make(home: Path) -> Identity:
    mark_private(home)
    device, transport = DeviceKey.generate(), TransportKey.generate()
    secrets = f"{b64u(device.seed)}.{b64u(transport.secret)}"
    in_keyring = _to_keyring(device.id, secrets)
    key_file = _KeyFile(
        v=1,
        id=device.id,
        kept="keyring" if in_keyring else "file",
        secrets="" if in_keyring else secrets,
    )
    if create_private(home / FILE, msgspec.json.encode(key_file)):
        return Identity(device, transport, key_file.kept)
    other = find_identity(home)  # another command made one at the same moment: that one stands
    if other is None:
        raise ClientError(f"{home / FILE} was removed while it was read; try again")
    return other


def _from_keyring(key_id: str) -> str:
    passwords: list[str | None] = []

    def ask() -> None:
        import keyring

        passwords.append(keyring.get_password(KEYRING_SERVICE, key_id))

    if not _answers(ask) or not passwords or passwords[0] is None:
        raise ClientError(
            "this machine's device key is in the OS keyring, which does not answer; unlock it and try again"
        )
    return passwords[0]


def _to_keyring(key_id: str, secrets: str) -> bool:
    """Store the secrets in the OS keyring, and read them back. Returns whether they are stored there."""
    echoed: list[str | None] = []

    def store() -> None:
        import keyring

        keyring.set_password(KEYRING_SERVICE, key_id, secrets)
        echoed.append(keyring.get_password(KEYRING_SERVICE, key_id))

    return _answers(store) and echoed == [secrets]


def _answers(work: Callable[[], None]) -> bool:
    """Run `work`, which uses the keyring, with a time limit. A keyring may wait for the user to answer a
    prompt. Returns whether `work` succeeded in time."""
    ended: list[bool] = []

    def run_guarded() -> None:
        try:
            work()
        except Exception:
            ended.append(False)
        else:
            ended.append(True)

    thread = threading.Thread(target=run_guarded, daemon=True)
    thread.start()
    thread.join(KEYRING_PATIENCE)
    return ended == [True]
