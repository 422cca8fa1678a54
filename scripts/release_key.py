"""Makes the key that signs builds of svc: python -m scripts.release_key FILE

The file contains the secret and only its owner can read it; keep it off the relays that offer the builds. The
public key is printed: `./scripts/build --release FOLDER --key FILE --next PUBLIC` builds programs that trust
it as the next key.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Invalid
from localstore.core.identity.keys import KEY_BYTES, DeviceKey, check_ed25519

_HEAD = "svc-release-key-v1 "


class NoKey(Exception):
    """Raised if there is no release key; the message says why."""


def make(file: Path) -> DeviceKey:
    """Make a new key, and store it in a new file. Raises NoKey if the file exists or cannot be written."""
    key = DeviceKey.generate()
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise NoKey(f"{file} cannot be made: {error.strerror}") from None
    with os.fdopen(fd, "w") as opened:
        opened.write(f"{_HEAD}{b64u(key.seed)}\n")
    return key


def read(file: Path) -> DeviceKey:
    """Read the key in a file. Raises NoKey if the file cannot be read or has no key."""
    try:
        with file.open() as opened:
            text = opened.read(200)
    except (OSError, UnicodeDecodeError) as error:
        raise NoKey(
            f"{file} cannot be read ({error}); make a key: python -m scripts.release_key {file}"
        ) from None
    try:
        return DeviceKey.generate(unb64u(text.removeprefix(_HEAD).strip(), KEY_BYTES))
    except Invalid:
        raise NoKey(f"{file} holds no release key; make one: python -m scripts.release_key {file}") from None


def public(text: str) -> str:
    """Return the text unchanged if it is a public key. Raises NoKey if it is not."""
    try:
        check_ed25519(unb64u(text, KEY_BYTES))
    except Invalid:
        raise NoKey(f"{text[:100]!r} is no public key; python -m scripts.release_key prints one") from None
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    try:
        key = make(parser.parse_args().file)
    except NoKey as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{b64u(key.public)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
