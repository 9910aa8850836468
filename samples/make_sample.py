"""Draw samples/sample.png: printed lines for `make run` to read.

    python samples/make_sample.py [FILE.png]

The letters are Pillow's own font, so the picture needs no other file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

#: The lines in the picture, which are also the expected result of reading it.
LINES = ("Models run in browsers", "Order No. 4171", "12 brass hinges", "Sum 1,284.75 EUR", "May 17, 2026")
SIZE, MARGIN, LETTERS, LEADING = (400, 256), 24, 26, 46
#: Words apart as in print, a little more than this font has them.
WORD_GAP = 11


def draw() -> Image.Image:
    """Return the picture: dark letters on paper that is lit from the left."""
    light = np.linspace(250, 222, SIZE[0]).astype(np.uint8)
    image = Image.fromarray(np.broadcast_to(light[None, :, None], (SIZE[1], SIZE[0], 3)).copy())
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(LETTERS)
    for number, line in enumerate(LINES):
        x, y = MARGIN, MARGIN + number * LEADING - LETTERS // 4
        for word in line.split():
            pen.text((x, y), word, font=font, fill=(25, 30, 60))
            x += int(pen.textlength(word, font)) + WORD_GAP
    return image


if __name__ == "__main__":
    draw().save(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("sample.png"), optimize=True)
