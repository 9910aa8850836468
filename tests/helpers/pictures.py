"""Pictures in files, in more forms than Pillow writes, and models that decode them."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import onnx
from PIL import Image

RNG = np.random.default_rng(20)
HEIGHT, WIDTH = 21, 37
NOISE = RNG.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
_Y, _X = np.mgrid[:HEIGHT, :WIDTH]
SMOOTH = np.stack([_X * 6, _Y * 12, (_X + _Y) * 4], -1).astype(np.uint8)
ALPHA = RNG.integers(0, 256, (HEIGHT, WIDTH, 1), dtype=np.uint8)
#: Adam7: the first column and row of each pass, and its steps.
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def decoder(pixel_format: str = "RGB") -> bytes:
    """Return a model of one ImageDecoder."""
    return onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 20]> pictures (uint8[n] x) => (uint8[h,w,c] y)
        {{ [decode] y = ImageDecoder<pixel_format="{pixel_format}">(x) }}"""
    ).SerializeToString()


def saved(pixels: np.ndarray, file_format: str, mode: str = "", **options: object) -> bytes:
    """Return a file written by Pillow, from pixels in this mode."""
    image = Image.fromarray(pixels)
    file = io.BytesIO()
    (image.convert(mode) if mode else image).save(file, format=file_format, **options)
    return file.getvalue()


def by_pillow(data: bytes) -> np.ndarray:
    """Return a file's pixels, RGB; colors of transparent ones are the stored ones."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def png(samples: np.ndarray, depth: int, color: int, interlaced: bool = False, palette: bytes = b"") -> bytes:
    """Return a PNG whose rows have all filters in turn.

    Args:
        samples: [height, width, samples of a pixel], below 2 ** depth.
        depth, color: As in the file's header.
        interlaced: True for Adam7.
        palette: Colors, three bytes each.
    """
    height, width, count = samples.shape
    data = b""
    for left, top, right, down in PASSES if interlaced else ((0, 0, 1, 1),):
        part = samples[top::down, left::right].astype(np.uint16)
        if not part.size:
            continue
        bits = (part.reshape(part.shape[0], -1, 1) >> np.arange(depth - 1, -1, -1)) & 1
        rows = np.packbits(bits.reshape(part.shape[0], -1).astype(np.uint8), axis=1)
        data += _filtered(rows, max(1, count * depth // 8))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced))]
    chunks += [(b"PLTE", palette)] if palette else []
    packed = zlib.compress(data)
    chunks += [(b"IDAT", packed[:40]), (b"IDAT", packed[40:]), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def _filtered(rows: np.ndarray, step: int) -> bytes:
    out, above = b"", np.zeros(rows.shape[1], np.int16)
    for y, row in enumerate(rows.astype(np.int16)):
        a, c = (np.concatenate([np.zeros(step, np.int16), line])[: row.size] for line in (row, above))
        near = np.abs(np.stack([above - c, a - c, a + above - 2 * c]))
        paeth = np.choose(np.argmin(near, 0), [a, above, c])
        guess = [np.zeros_like(row), a, above, (a + above) // 2, paeth][y % 5]
        out += bytes([y % 5]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        above = row
    return out


def bmp(bits: int, compression: int, size: tuple[int, int], data: bytes, extra: bytes = b"") -> bytes:
    """Return a BMP of width and height (below 0: from the top down); `extra` is masks or a palette."""
    header = struct.pack("<IiiHHIIiiII", 40, *size, 1, bits, compression, len(data), 0, 0, 0, 0)
    start = 14 + len(header) + len(extra)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + header + extra + data


def _pictures() -> dict[str, bytes]:
    gray, colors = NOISE[..., :1], RNG.integers(0, 256, (256, 3), dtype=np.uint8).tobytes()
    found = {}
    for name, interlaced in (("", False), (" in passes", True)):
        for depth in (1, 2, 4, 8):
            found[f"png gray {depth}{name}"] = png(gray >> (8 - depth), depth, 0, interlaced)
            found[f"png palette {depth}{name}"] = png(gray >> (8 - depth), depth, 3, interlaced, colors[: 3 << depth])
        found[f"png rgb{name}"] = png(NOISE, 8, 2, interlaced)
        found[f"png gray, alpha{name}"] = png(np.concatenate([gray, ALPHA], -1), 8, 4, interlaced)
        found[f"png rgba{name}"] = png(np.concatenate([NOISE, ALPHA], -1), 8, 6, interlaced)
        wide = NOISE.astype(np.uint16) * 256 + ALPHA
        found[f"png rgb 16{name}"] = png(wide, 16, 2, interlaced)
    found["png of one pixel"] = png(NOISE[:1, :1], 8, 2, True)
    for mode in ("1", "L", "P", "RGB"):
        found[f"bmp {mode}"] = saved(NOISE, "BMP", mode)
    fields = RNG.integers(0, 256, HEIGHT * 40 * 2, dtype=np.uint8).tobytes()
    found["bmp 16"] = bmp(16, 0, (WIDTH + 1, HEIGHT), fields)
    found["bmp 16, 565"] = bmp(16, 3, (WIDTH + 1, HEIGHT), fields, struct.pack("<III", 0xF800, 0x7E0, 0x1F))
    found["bmp from the top down"] = bmp(24, 0, (4, -3), bytes(range(36)))
    palette = RNG.integers(0, 256, (256, 4), dtype=np.uint8).tobytes()
    runs = bytes([5, 1, 0, 3, 7, 8, 9, 0, 0, 0, 0, 2, 2, 0, 3, 4, 0, 0, 8, 2, 0, 1])
    found["bmp runs of 8"] = bmp(8, 1, (8, 3), runs, palette)
    found["bmp runs of 4"] = bmp(4, 2, (8, 2), bytes([5, 0x12, 0, 3, 0x34, 0x50, 0, 0, 8, 0x67, 0, 1]), palette[:64])
    for mode in ("1", "L", "RGB"):
        found[f"pnm {mode}"] = saved(NOISE, "PPM", mode)
    found["pnm bits in words"] = b"P1\n# a comment\n5 2\n1 0 1 1 0\n01001\n"
    found["pnm gray in words"] = b"P2 3 2 200 # the most\n0 50 100\n150 200 33\n"
    found["pnm colors in words"] = b"P3\n2 1\n255\n1 2 3 250 251 252"
    found["pnm of few colors"] = b"P6 8 4 63\n" + (NOISE[:4, :8] >> 2).tobytes()
    found["pnm of 16 bits"] = b"P6 8 4 65535\n" + (NOISE[:4, :8].astype(">u2") * 257).tobytes()
    return found


#: Pictures that our own decoders read, by format.
PICTURES = _pictures()
