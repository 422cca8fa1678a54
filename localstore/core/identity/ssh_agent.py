"""The messages of the ssh-agent protocol (draft-ietf-sshm-ssh-agent) that ask for an Ed25519 signature.

A message is framed by its length, as every string inside it is (`encoding.length_prefixed`)."""

from __future__ import annotations

import struct

from localstore.core.encoding import length_prefixed
from localstore.core.errors import Invalid

ALGORITHM = b"ssh-ed25519"
LIST, LISTED, SIGN, SIGNED = 11, 12, 13, 14
"""Types of messages: a request and its answer, twice."""
ANSWER_BYTES = 256 * 1024  # of the longest answer that is read


def encode_request(kind: int, body: bytes) -> bytes:
    """Encode a request of the type `kind`, as it is sent to an ssh-agent."""
    return length_prefixed(bytes((kind,)) + body)


def encode_key(public: bytes) -> bytes:
    """Encode an Ed25519 public key as ssh-agents name it."""
    return length_prefixed(ALGORITHM, public)


def signing_body(key: bytes, message: bytes) -> bytes:
    """The body of a request to sign `message`. `key`: the encoded public key."""
    return length_prefixed(key, message) + struct.pack(">I", 0)


def take_string(content: bytes) -> tuple[bytes, bytes]:
    """Split bytes into (the string at their start, the rest). Raises Invalid if the string is incomplete."""
    if len(content) < 4 or len(content) < 4 + (length := struct.unpack(">I", content[:4])[0]):
        raise Invalid("an answer that cannot be read")
    return content[4 : 4 + length], content[4 + length :]


def take_signature(body: bytes) -> tuple[bytes, bytes]:
    """Return (name of the algorithm, signature) from the body of the answer to a request to sign. Raises
    Invalid if the answer is incomplete."""
    signature, _ = take_string(body)
    algorithm, rest = take_string(signature)
    return algorithm, take_string(rest)[0]
