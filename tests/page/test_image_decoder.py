"""ImageDecoder in each browser, against Pillow."""

from __future__ import annotations

import shutil
import struct
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pictures
import pytest
from pictures import ALPHA, NOISE, PICTURES, SMOOTH, by_pillow, decoder, saved
from PIL import Image

from py_ort import BrowserOptions, InferenceSession
from py_ort.browser import find
from py_ort.exceptions import InvalidArgument, NotImplemented, OutOfMemory

Decode = Callable[..., np.ndarray]


@pytest.fixture(scope="module", params=["chromium", "firefox", "webkit"])
def decode(request: pytest.FixtureRequest) -> Iterator[Decode]:
    """Runs the operator."""
    if not find.installed(request.param) or (request.param == "webkit" and not shutil.which("Xvfb")):
        pytest.skip(f"{request.param} is not installed")
    browser = BrowserOptions(browser=request.param)
    sessions: dict[str, InferenceSession] = {}

    def call(data: bytes, pixel_format: str = "RGB") -> np.ndarray:
        if pixel_format not in sessions:
            sessions[pixel_format] = InferenceSession(decoder(pixel_format), providers=["wasm"], browser=browser)
        return sessions[pixel_format].run(None, {"x": np.frombuffer(data, np.uint8)})[0]

    yield call
    for session in sessions.values():
        session.close()


def test_what_our_own_decoders_read(decode: Decode) -> None:
    for name, data in PICTURES.items():
        np.testing.assert_array_equal(decode(data), by_pillow(data), name)


@pytest.mark.parametrize("pixels", [NOISE, SMOOTH], ids=["noise", "smooth"])
def test_what_browsers_read(decode: Decode, pixels: np.ndarray) -> None:
    """Exactly: ONNX specifies libjpeg-turbo, which all of them have, and WebP decodes in one way only.

    A browser with another decoder may differ: T.83 of JPEG's standard allows each coefficient to be off by one, which
    is some units of 255 in a pixel.
    """
    files = [saved(pixels, "JPEG", quality=q, subsampling=s) for q in (75, 95) for s in (0, 1, 2)]
    files += [saved(pixels, "JPEG", progressive=True), saved(pixels, "JPEG", "L"), saved(pixels, "JPEG", "CMYK")]
    files += [saved(pixels, "WEBP"), saved(pixels, "WEBP", lossless=True)]
    transparent = np.concatenate([pixels, ALPHA], -1)
    files.append(saved(transparent, "WEBP", exact=True))
    for i, data in enumerate(files):
        np.testing.assert_array_equal(decode(data), by_pillow(data), f"file {i}")


def test_formats_of_pixels(decode: Decode) -> None:
    for data in (saved(NOISE, "PNG"), saved(NOISE, "JPEG"), saved(NOISE, "BMP", "L")):
        rgb = by_pillow(data)
        np.testing.assert_array_equal(decode(data, "BGR"), rgb[..., ::-1])
        gray = np.asarray(Image.fromarray(rgb).convert("L"))[..., None]
        np.testing.assert_array_equal(decode(data, "Grayscale"), gray)


def test_pixels_are_those_of_the_file(decode: Decode) -> None:
    """As in ONNX's reference, no picture is rotated by a camera's tag, nor recolored by a profile."""
    turned = Image.Exif()
    turned[0x112] = 6
    # A damaged profile is ignored: gamma in a PNG is the simple one.
    gamma = struct.pack(">I", 4) + b"gAMA" + struct.pack(">I", 100000)
    plain = saved(NOISE, "PNG")
    recolored = plain[:33] + gamma + struct.pack(">I", zlib.crc32(gamma[4:])) + plain[33:]
    for data in (
        saved(SMOOTH, "JPEG", exif=turned),
        saved(SMOOTH, "WEBP", lossless=True, exif=turned),
        recolored,
    ):
        np.testing.assert_array_equal(decode(data), by_pillow(data))


def test_runs_without_an_end(decode: Decode) -> None:
    """The end mark behind the last pixel may be missing."""
    palette = bytes(range(256)) * 4
    data = pictures.bmp(8, 1, (4, 2), bytes([4, 1, 0, 0, 4, 2]), palette)
    np.testing.assert_array_equal(decode(data), by_pillow(data))
    with pytest.raises(InvalidArgument, match=r"BMP .*ends too early"):
        decode(pictures.bmp(8, 1, (4, 2), bytes([4, 1, 0, 0, 3, 2]), palette))


def _cut(data: bytes) -> bytes:
    return data[: len(data) * 3 // 4]


def _with_a_small_one() -> bytes:
    """Cut in its pixels: the end marker in it belongs to the thumbnail."""
    whole = saved(np.tile(NOISE, (6, 6, 1)), "JPEG", exif=b"Exif\0\0" + saved(SMOOTH, "JPEG"))
    return whole[: len(whole) // 2]


def _claiming(width: int, height: int) -> bytes:
    """A JPEG that claims another size."""
    data = saved(NOISE, "JPEG")
    frame = data.index(b"\xff\xc0") + 5
    return data[:frame] + struct.pack(">HH", height, width) + data[frame + 4 :]


@pytest.mark.parametrize(
    ("data", "named"),
    {
        "nothing": (b"", "it is empty"),
        "words": (b"hello, this is no picture", "begins with 68656c6c6f"),
        "half a PNG": (_cut(saved(NOISE, "PNG")), "PNG .*ends too early"),
        "a PNG with a wrong sum": (saved(NOISE, "PNG").replace(b"IDAT", b"IDAU"), "PNG .*the sum of its chunk IDAU"),
        "a PNG of too few rows": (pictures.png(NOISE[:, :, :1], 1, 3, palette=b"abc"), "PNG .*no color 1"),
        "half a JPEG": (_cut(saved(NOISE, "JPEG")), "JPEG .*ends too early"),
        "half a JPEG with a small one in it": (_with_a_small_one(), "JPEG .*ends too early"),
        "a JPEG of too few bytes": (_claiming(16000, 16000), "JPEG .*ends too early"),
        "a damaged JPEG": (saved(NOISE, "JPEG")[:200] + bytes(300) + b"\xff\xd9", "JPEG"),
        "half a WebP": (_cut(saved(NOISE, "WEBP", lossless=True)), "WebP .*ends too early"),
        "half a BMP": (_cut(saved(NOISE, "BMP")), "BMP .*ends too early"),
        "a BMP of 3 bits": (pictures.bmp(3, 0, (2, 2), bytes(16)), "BMP .*3 bits"),
        "half a PNM": (_cut(saved(NOISE, "PPM")), "PNM .*ends too early"),
        "a PNM of letters": (b"P3 a b", "PNM .*no number"),
    }.values(),
)
def test_damaged_bytes(decode: Decode, data: bytes, named: str) -> None:
    """The error names the node, and the session still works."""
    with pytest.raises(InvalidArgument, match=named) as caught:
        decode(data)
    assert (caught.value.node, caught.value.op_type) == ("decode", "ImageDecoder")
    np.testing.assert_array_equal(decode(PICTURES["png rgb"]), NOISE)


def test_sizes_that_nobody_has_memory_for(decode: Decode) -> None:
    with pytest.raises(OutOfMemory, match="60000 x 60000"):
        decode(pictures.png(np.zeros((1, 1, 1)), 8, 0).replace(_size(1, 1), _size(60000, 60000)))
    gif, webp = saved(NOISE, "GIF"), saved(NOISE, "WEBP", save_all=True, append_images=[Image.fromarray(SMOOTH)])
    size = webp.index(b"VP8X") + 12
    for data in (
        _claiming(20000, 20000),
        gif[:6] + struct.pack("<HH", 20000, 20000) + gif[10:],
        webp[:size] + struct.pack("<I", 19999)[:3] * 2 + webp[size + 6 :],
    ):
        with pytest.raises(OutOfMemory, match="20000 x 20000"):
            decode(data)


def _size(width: int, height: int) -> bytes:
    """A PNG's header with its checksum."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return header + struct.pack(">I", zlib.crc32(header))


@pytest.mark.parametrize(("file_format", "named"), [("TIFF", "TIFF"), ("JPEG2000", "JPEG 2000")])
def test_formats_without_a_decoder(decode: Decode, file_format: str, named: str) -> None:
    """Safari has these."""
    with pytest.raises(NotImplemented, match=f"{named} pictures.*save them as PNG") as caught:
        decode(saved(NOISE, file_format))
    assert caught.value.op_type == "ImageDecoder"


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
def test_in_bodies_and_between_other_nodes(provider: str) -> None:
    """In a branch; nodes on the GPU use the pixels, in each run those of its picture."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 20]> g (uint8[n] x, bool color) => (float[h,w,c] y) {
            pixels = If(color) <
                then_branch = colors () => (uint8[h,w,c] a) { a = ImageDecoder<pixel_format="BGR">(x) },
                else_branch = grays () => (uint8[h,w,c] b) { b = ImageDecoder<pixel_format="Grayscale">(x) }>
            numbers = Cast<to=1>(pixels)  y = Sqrt(numbers)
        }"""
    ).SerializeToString()
    with InferenceSession(model, providers=[provider]) as session:
        for data in (saved(NOISE, "PNG"), saved(SMOOTH, "JPEG"), saved(SMOOTH, "PNG")):
            for color in (True, False):
                (got,) = session.run(None, {"x": np.frombuffer(data, np.uint8), "color": np.array(color)})
                image = Image.fromarray(by_pillow(data))
                wanted = np.asarray(image)[..., ::-1] if color else np.asarray(image.convert("L"))[..., None]
                np.testing.assert_allclose(got, np.sqrt(wanted.astype(np.float32)), rtol=1e-5)


def test_a_picture_in_the_model() -> None:
    file = np.frombuffer(saved(NOISE, "PNG"), np.uint8)
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("ImageDecoder", ["file"], ["pixels"]),
            onnx.helper.make_node("Add", ["pixels", "x"], ["y"]),
        ],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [1])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, ["h", "w", "c"])],
        [onnx.numpy_helper.from_array(file, "file")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    with InferenceSession(model.SerializeToString(), providers=["wasm"]) as session:
        for more in (1, 2):
            (got,) = session.run(None, {"x": np.full(1, more, np.uint8)})
            np.testing.assert_array_equal(got, NOISE + np.uint8(more))
