"""Draw the lines that were read into a picture: a box around each, and beside it what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

_COLORS = ((47, 111, 222), (216, 27, 96), (34, 139, 84), (217, 130, 43), (120, 70, 180))
_INK, _PAPER, _SMALLEST = (25, 30, 60), (255, 255, 255), 8


@dataclass(frozen=True)
class Line:
    """A line of text in a picture.

    Attributes:
        text: The words of the line.
        score: The confidence, 0 to 1.
        box: Its corners in pixels, from the upper left one clockwise: [4, 2].
    """

    text: str
    score: float
    box: np.ndarray


def draw_lines(picture: np.ndarray, lines: Sequence[Line]) -> Image.Image:
    """Return the picture (uint8 [height, width, 3], RGB) with boxes, and beside it the texts where the boxes are."""
    height, width = picture.shape[:2]
    both = Image.new("RGB", (2 * width, height), _PAPER)
    both.paste(Image.fromarray(picture), (0, 0))
    pen = ImageDraw.Draw(both)
    for number, line in enumerate(lines):
        color, corners = _COLORS[number % len(_COLORS)], [(float(x), float(y)) for x, y in line.box]
        pen.polygon(corners, outline=color, width=max(2, height // 300))
        beside = [(x + width, y) for x, y in corners]
        pen.polygon(beside, outline=color)
        left, top = np.min(beside, axis=0)
        room = np.max(beside, axis=0) - (left, top)
        font = _fitting(line.text, room[0], room[1])
        pen.text((left + 2, top + room[1] / 2), line.text, font=font, fill=_INK, anchor="lm")
    return both


def _fitting(text: str, width: float, height: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The largest letters, of Pillow's own font, with which a text fits into a box."""
    size = max(_SMALLEST, int(height * 0.8))
    while size > _SMALLEST and ImageFont.load_default(size).getlength(text) > width:
        size -= 1
    return ImageFont.load_default(size)
