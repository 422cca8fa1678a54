"""Decodes an image: `python -m tui.images.decode blocks|png|sixel WIDTH HEIGHT`. The image is read from
stdin, and the result is written to stdout as JSON.

Images come from strangers. So they are decoded in a process with little memory and time, which may crash
without harm. WIDTH and HEIGHT: the largest size in pixels."""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

import msgspec

from svc.agent.invoke.picture import Refusal, bound, open_image, reason

COLOURS = 48  # of an image that is drawn as cells or as sixels: runs of one colour are short to send


class DecodedImage(msgspec.Struct):
    """A decoded image. `data`: for blocks, the RGB of each pixel in base64. For png, a PNG in base64. For
    sixel, the sixels. `width`, `height`: its size in pixels. `full_width`, `full_height`, `frames`: size and
    number of frames of the original image. `kind`: format of the original image."""

    kind: str
    width: int
    height: int
    full_width: int
    full_height: int
    frames: int
    data: str


def draw_image(raw: bytes, way: str, width: int, height: int) -> DecodedImage:
    """Returns the first frame of an image, upright, and shrunk to at most `width` × `height` pixels. It is
    never enlarged. `way`: blocks, png or sixel."""
    from PIL import Image, ImageOps

    image = open_image(raw)
    kind, frames = str(image.format).lower(), int(getattr(image, "n_frames", 1))
    full_width, full_height = image.size
    image.draft("RGB", (width, height))
    small = ImageOps.exif_transpose(image)
    small.thumbnail((width, height))
    clear = small.convert("RGBA")
    flat = Image.new("RGB", clear.size)
    flat.paste(clear, mask=clear.getchannel("A"))
    if way == "png":
        data = _png(clear)
    else:
        few = flat.quantize(COLOURS, dither=Image.Dither.NONE)
        data = _sixels(few) if way == "sixel" else base64.b64encode(few.convert("RGB").tobytes()).decode()
    return DecodedImage(kind, *flat.size, full_width, full_height, frames, data)


def _png(image: Any) -> str:
    image.info = {}
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def _sixels(image: Any) -> str:
    """Returns the image in the format sixel, in which some terminals draw pixels. The sequences that begin
    and end it are left out."""
    width, height = image.size
    palette, pixels = image.getpalette(), image.tobytes()
    used = sorted(set(pixels))
    parts = [f'"1;1;{width};{height}']
    for colour in used:
        red, green, blue = (round(level * 100 / 255) for level in palette[colour * 3 : colour * 3 + 3])
        parts.append(f"#{colour};2;{red};{green};{blue}")
    for top in range(0, height, 6):
        rows = [pixels[y * width : (y + 1) * width] for y in range(top, min(top + 6, height))]
        lines = []
        for colour in sorted(set().union(*rows)):
            bits = [sum((row[x] == colour) << y for y, row in enumerate(rows)) for x in range(width)]
            lines.append(f"#{colour}{_runs(bits)}")
        parts.append("$".join(lines))
        parts.append("-")
    return "".join(parts)


def _runs(bits: list[int]) -> str:
    runs, at = [], 0
    while at < len(bits):
        end = at
        while end < len(bits) and bits[end] == bits[at]:
            end += 1
        sign = chr(63 + bits[at])
        runs.append(sign * (end - at) if end - at < 4 else f"!{end - at}{sign}")
        at = end
    return "".join(runs)


def main(words: list[str]) -> None:
    raw = sys.stdin.buffer.read()
    bound()
    answer: DecodedImage | Refusal
    try:
        answer = draw_image(raw, words[0], int(words[1]), int(words[2]))
    except Exception as error:  # whatever a decoder raises over bytes of strangers
        answer = Refusal(reason(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main(sys.argv[1:])
