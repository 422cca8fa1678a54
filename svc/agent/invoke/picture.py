"""`python -m svc.agent.invoke.picture metadata|thumbnail [SIZE]`: reads one image from stdin and writes JSON
to stdout.

Images are untrusted bytes. They are therefore decoded in a process that has little memory and time, and that
can crash without harm."""

from __future__ import annotations

import base64
import contextlib
import io
import re
import sys
import warnings
from typing import Any

import msgspec

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
PIXELS_MAX = 64_000_000  # of an image
MEMORY_BYTES = 1 << 30
CPU_SECONDS = 20
_ORIENTATION, _MAKE, _MODEL, _TIME, _EXIF, _TAKEN = 0x0112, 0x010F, 0x0110, 0x0132, 0x8769, 0x9003


class Metadata(msgspec.Struct):
    """Facts from the header of an image. `frames` is the number of frames of an animation. `orientation` is a
    number as in EXIF, where 1 means upright. `taken_at` and `camera` are texts as the camera wrote them."""

    kind: str
    width: int
    height: int
    mode: str
    frames: int
    orientation: int
    taken_at: str | None
    camera: str | None


class Thumbnail(msgspec.Struct):
    """A small picture of an image. `data` has its bytes in base64."""

    media_type: str
    width: int
    height: int
    data: str


class Refusal(msgspec.Struct):
    """The answer if the bytes are not an image in a supported format (FORMATS), or if the image is damaged or
    too large. `error` is a sentence that says so."""

    error: str


def reason(error: BaseException) -> str:
    """Return a sentence that says why an image cannot be read. Details of the decoder's internal objects are
    left out."""
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        return f"it is damaged, or none of {', '.join(FORMATS)}"
    words = re.sub(r"<[^<>]*>", "the file", str(error))
    if isinstance(error, OSError) and words:  # Pillow's word for bytes that end early or are no pixels
        return f"it is damaged ({words})"[:200]
    return f"{type(error).__name__}: {words}"[:200] if words else type(error).__name__


def metadata(raw: bytes) -> Metadata:
    """Return the metadata in the image's header; no pixels are decoded."""
    image = open_image(raw)
    exif = image.getexif()
    words = [_word(exif.get(_MAKE)), _word(exif.get(_MODEL))]
    width, height = image.size
    return Metadata(
        str(image.format).lower(),
        width,
        height,
        image.mode,
        int(getattr(image, "n_frames", 1)),
        exif.get(_ORIENTATION, 1) if isinstance(exif.get(_ORIENTATION, 1), int) else 1,
        _word(exif.get_ifd(_EXIF).get(_TAKEN)) or _word(exif.get(_TIME)) or None,
        " ".join(word for word in words if word) or None,
    )


def thumbnail(raw: bytes, size: int) -> Thumbnail:
    """Return the image, upright, as a PNG of at most `size` pixels in either direction."""
    from PIL import ImageOps

    image = open_image(raw)
    image.draft("RGB", (size, size))
    small = ImageOps.exif_transpose(image)
    small.thumbnail((size, size))
    if small.mode not in ("RGB", "RGBA", "L"):
        small = small.convert("RGBA")
    small.info = {}
    png = io.BytesIO()
    small.save(png, "PNG")
    return Thumbnail("image/png", *small.size, base64.b64encode(png.getvalue()).decode())


def open_image(raw: bytes) -> Any:
    from PIL import Image

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = PIXELS_MAX
    return Image.open(io.BytesIO(raw), formats=FORMATS)


def _word(value: object) -> str:
    return value.replace("\0", "").strip()[:200] if isinstance(value, str) else ""


def bound() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(words: list[str]) -> None:
    raw = sys.stdin.buffer.read()
    bound()
    answer: Metadata | Thumbnail | Refusal
    try:
        answer = metadata(raw) if words[0] == "metadata" else thumbnail(raw, int(words[1]))
    except Exception as error:  # whatever a decoder raises over bytes of strangers
        answer = Refusal(reason(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
