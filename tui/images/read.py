"""Requests for pictures of a repository. The server sends the bytes, and a separate process decodes them."""

from __future__ import annotations

import base64
import subprocess
import sys

import msgspec

from localstore.core.errors import Invalid, SvcError, TooLarge
from localstore.core.model import history
from localstore.core.model.history import Blob
from localstore.core.model.limits import MIB, in_words
from svc.agent.invoke.picture import Refusal
from svc.api import Api
from tui.images.decode import DecodedImage
from tui.reads import Read

BYTES = 32 * MIB  # of an image
SECONDS = 30.0  # that a decoder may take
SAID = 8 * MIB  # bytes that a decoder may say
ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff")


def is_picture(path: str) -> bool:
    """Returns whether a path has the file name of an image, judged by its ending."""
    return path.lower().endswith(ENDINGS)


def picture(repo_id: str, seal: str, path: str, way: str, width: int, height: int) -> Read[DecodedImage]:
    """Returns a request for a picture in a seal, shrunk to at most `width` × `height` pixels. The request
    raises Invalid if the bytes are not an image, and TooLarge if there are too many."""

    def call(api: Api) -> DecodedImage:
        return decode_picture(path, _bytes(api, repo_id, seal, path), way, width, height)

    key = f"repos/{repo_id}/picture/{seal}/{way}{width}x{height}/{path}"
    return Read(key, DecodedImage, call, final=True)


def decode_picture(path: str, raw: bytes, way: str, width: int, height: int) -> DecodedImage:
    """Decodes a picture in a separate process. Raises Invalid if the bytes are not an image."""
    words = [sys.executable, "-P", "-m", "tui.images.decode", way, str(width), str(height)]
    try:
        done = subprocess.run(words, input=raw, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise _make_refusal(path, "decoding it takes too long") from None
    answer = done.stdout[:SAID]
    try:
        image = msgspec.json.decode(answer, type=DecodedImage)
    except msgspec.MsgspecError:
        raise _make_refusal(path, _why(answer)) from None
    if image.width < 1 or image.height < 1:
        raise _make_refusal(path, "it has no pixels")
    return image


def say_undrawn(error: BaseException) -> str:
    """Returns why a picture cannot be drawn, if its bytes are the reason. Returns "" for any other error,
    such as a server that does not answer."""
    return str(error.extra.get("why", "")) if isinstance(error, SvcError) else ""


def _make_refusal(path: str, why: str) -> Invalid:
    return Invalid(f"{path} is not an image that can be shown: {why}", why=why)


def _why(answer: bytes) -> str:
    try:
        return msgspec.json.decode(answer, type=Refusal).error
    except msgspec.MsgspecError:
        return "its decoder died"


def _bytes(api: Api, repo_id: str, seal: str, path: str) -> bytes:
    blob: Blob = api.send(history.BLOB, id=repo_id, sha=seal, path=path)
    if blob.content is not None:
        return base64.b64decode(blob.content) if blob.encoding == "base64" else blob.content.encode()
    if blob.size > BYTES or blob.kind == "chunked":
        most = f"a picture that is shown has at most {in_words(BYTES)}"
        raise TooLarge(f"{path} has {blob.size:,} bytes; {most}", why=most)
    return api.payload.get(repo_id, bytes.fromhex(blob.blake3), BYTES)
