"""Draws small charts as SVG, with logarithmic scales on both axes, without a library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLUMNS, WIDE, HIGH = 4, 250, 190
LEFT, TOP, RIGHT, BOTTOM = 48, 30, 26, 34  # around the plot of a panel
COLOURS = {"svc": "#0a6cbd", "git": "#b3541e"}
STYLE = "font-family:system-ui,sans-serif;font-size:11px;fill:#333"


@dataclass(frozen=True)
class Panel:
    """One chart. `xs`: the values on the horizontal axis. `lines`: name of a line → its values, one for each
    of `xs`, all above 0."""

    title: str
    xs: Sequence[int]
    lines: Mapping[str, Sequence[float]]


def svg(panels: Sequence[Panel]) -> str:
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * WIDE, rows * HIGH + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" style="{STYLE}">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for at, panel in enumerate(panels):
        x, y = at % COLUMNS * WIDE, at // COLUMNS * HIGH
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    at = LEFT
    for name, colour in COLOURS.items():
        parts.append(f'<text x="{at}" y="{height - 6}" style="fill:{colour};font-weight:bold">{name}</text>')
        at += 40
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel) -> list[str]:
    values = [value for line in panel.lines.values() for value in line]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    first, last = math.log10(panel.xs[0]), math.log10(panel.xs[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - first) / ((last - first) or 1)
        up = (math.log10(y) - low) / (high - low)
        return (
            round(LEFT + across * (WIDE - LEFT - RIGHT), 1),
            round(HIGH - BOTTOM - up * (HIGH - TOP - BOTTOM), 1),
        )

    parts = [f'<text x="{LEFT}" y="{TOP - 12}" style="font-weight:bold">{escape(panel.title)}</text>']
    for power in range(low, high + 1):
        x, y = place(panel.xs[0], 10.0**power)
        parts.append(f'<path d="M{x} {y}H{WIDE - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 5}" y="{y + 4}" text-anchor="end">{10.0**power:g}</text>')
    for one in panel.xs:
        x, y = place(one, 10.0**low)
        parts.append(f'<text x="{x}" y="{y + 15}" text-anchor="middle">{one:,}</text>')
    for name, line in panel.lines.items():
        points = [place(x, y) for x, y in zip(panel.xs, line, strict=True)]
        path = "M" + "L".join(f"{x} {y}" for x, y in points)
        parts.append(f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{COLOURS[name]}"/>' for x, y in points]
    return parts
