"""Browsers of other machines: one port with TLS and a secret, at an address that is not loopback."""

from __future__ import annotations

import gzip
import ipaddress
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import small_models
from other_machines import other_machines

import py_ort
from py_ort.browser import find
from py_ort.browser.address import own_address
from py_ort.exceptions import BrowserError, EngineError, InvalidArgument
from py_ort.folders import ASSETS
from py_ort.runtime.peer.package_files import find_dist

TLS = Path(__file__).parents[1] / "helpers/tls"
CERTIFICATE = (TLS / "certificate.pem", TLS / "key.pem")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
FEEDS = {"x": X, "scale": np.ones(3, np.float32)}


def elsewhere(**options: object) -> py_ort.BrowserOptions:
    """Options of a browser that connects like one on another machine."""
    given = {"host": "0.0.0.0", "certificate": CERTIFICATE, "webgpu": "software", **options}
    return py_ort.BrowserOptions(**given)  # type: ignore[arg-type]


@pytest.fixture
def in_a_network() -> None:
    try:
        alone = ipaddress.ip_address(own_address()).is_loopback
    except ValueError:  # a name, where there is no address
        alone = True
    if alone:
        pytest.skip("this machine has no address in a network")


@pytest.mark.usefixtures("in_a_network")
@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_a_session_through_the_gateway(provider: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "py_ort")
    with py_ort.InferenceSession(small_models.add(), providers=[provider], browser=elsewhere()) as session:
        assert session.run(None, FEEDS)[0].tolist() == (X + 1).tolist()
        assert session.placement().counts()[provider] == 1
        large = np.ones((1 << 21, 3), np.float32)  # 25 MB: fetched by the page, like weights
        np.testing.assert_array_equal(session.run(None, {**FEEDS, "x": large})[0], large + 1)
        if provider == "wasm":
            assert session.stats()["created"]["wasm"]["threads"] >= 1
    assert not [text for text in caplog.messages if "without TLS" in text]


@pytest.mark.usefixtures("in_a_network")
@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_the_other_engine_through_the_gateway(provider: str) -> None:
    try:
        find_dist()
    except EngineError as e:
        pytest.skip(str(e))
    options = elsewhere()
    engine = {"engine": "onnxruntime-web", "browser": options}
    with py_ort.InferenceSession(small_models.add(), providers=[provider], **engine) as session:
        assert session.run(None, FEEDS)[0].tolist() == (X + 1).tolist()


@pytest.fixture
def other_machine(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Our address from another machine, and a Chromium there."""
    with other_machines(1) as (machine,):
        yield machine.ours, machine.script(tmp_path / "chromium-elsewhere", find.binary())


def test_a_browser_of_another_machine(other_machine: tuple[str, Path]) -> None:
    ours, browser = other_machine
    options = elsewhere(browser=str(browser), host=ours)
    with py_ort.InferenceSession(small_models.add(), providers=["webgpu", "wasm"], browser=options) as session:
        assert session.run(None, FEEDS)[0].tolist() == (X + 1).tolist()
        assert session.placement().counts()["webgpu"] == 1
    with pytest.raises(BrowserError):  # not reachable on loopback
        py_ort.InferenceSession(
            small_models.add(), browser=py_ort.BrowserOptions(browser=str(browser), launch_timeout=10)
        )


@pytest.mark.usefixtures("in_a_network")
def test_two_browsers_share_it() -> None:
    options = elsewhere()
    one = py_ort.InferenceSession(small_models.add(), providers=["wasm"], browser=options)
    other = py_ort.InferenceSession(small_models.add(), providers=["wasm"], browser=elsewhere(env={"ANOTHER": "1"}))
    with one, other:
        for session in (one, other):
            assert session.run(None, FEEDS)[0].tolist() == (X + 1).tolist()


@pytest.fixture
def gateway(in_a_network: None, capfd: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The origin of a listening gateway, and the first part of its paths."""
    options = elsewhere(browser="capture", launch_timeout=3)
    with pytest.raises(BrowserError):
        py_ort.InferenceSession(small_models.add(), providers=["wasm"], browser=options)
    printed = capfd.readouterr().err
    found = re.search(r"(https://[\d.]+:\d+)(/[\w-]+)/index.html\S+", printed)
    assert found and "█" in printed, printed  # and a QR code
    origin, secret = found.groups()
    return origin, secret


def fetch(url: str, **headers: str) -> tuple[int, str, bytes]:
    """Return the status of an answer, its encoding, and its bytes."""
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=20) as answer:
            return answer.status, answer.headers.get("Content-Encoding", ""), answer.read()
    except urllib.error.HTTPError as e:
        return e.code, "", b""


def test_strangers_get_nothing(gateway: tuple[str, str]) -> None:
    """Without the secret there is no file; with it no websocket for pages of other origins, or without a token."""
    origin, secret = gateway

    def status(path: str, **headers: str) -> int:
        return fetch(origin + path, **headers)[0]

    assert status(f"{secret}/index.html") == 200
    assert status(f"{secret}/core.wasm", Range="bytes=0-9") == 206
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for path in ("/", "/index.html", "/core.wasm", "/x/index.html", f"{secret}x/index.html", "/../index.html"):
        assert status(path) == 404, path
    for path in ("/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd"):
        assert status(secret + path) in (400, 404), path
    assert status(f"{secret}/socket?token=x", Origin="https://other.example", **upgrade) == 403
    assert status(f"{secret}/socket?token=x", Origin=origin, **upgrade) == 403


def test_code_is_compressed_on_its_way(gateway: tuple[str, str]) -> None:
    url, file = f"{''.join(gateway)}/worker.js", (ASSETS / "worker.js").read_bytes()
    status, encoding, sent = fetch(url, Accept_Encoding="gzip, deflate, br")
    assert (status, encoding) == (200, "gzip") and len(sent) < len(file) / 3
    assert gzip.decompress(sent) == file
    assert fetch(url) == (200, "", file)
    assert fetch(url, Accept_Encoding="gzip", Range="bytes=5-9") == (206, "", file[5:10])


@pytest.mark.parametrize("encoding", ["gzip", ""])
def test_head_tells_what_get_would(gateway: tuple[str, str], encoding: str) -> None:
    def headers(method: str) -> dict[str, str]:
        asked = urllib.request.Request(f"{''.join(gateway)}/worker.js", method=method)
        asked.add_header("Accept-Encoding", encoding)
        with urllib.request.urlopen(asked, context=ssl._create_unverified_context(), timeout=20) as answer:
            assert bool(answer.read()) == (method == "GET")
            return {name: value for name, value in answer.headers.items() if name != "Date"}

    assert headers("HEAD") == headers("GET")


@pytest.mark.usefixtures("in_a_network")
def test_other_spellings_of_a_public_url(capfd: pytest.CaptureFixture[str]) -> None:
    """Browsers normalize the origin of a page, and a websocket accepts only this origin."""
    url = "https://TESTS.example:443/"
    options = elsewhere(browser="capture", launch_timeout=1, public_url=url)
    with pytest.raises(BrowserError):
        py_ort.InferenceSession(small_models.add(), providers=["wasm"], browser=options)
    assert re.search(r"\s+https://tests\.example/[\w-]+/index\.html\?", capfd.readouterr().err)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    for wrong, text in (
        ({"host": ""}, "are for a host"),
        ({"public_url": "tests.example"}, "public_url is like"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            elsewhere(**wrong)
    with pytest.raises(InvalidArgument, match=r"public_url='https://tests\.example:84433' is no URL"):
        py_ort.InferenceSession(small_models.add(), browser=elsewhere(public_url="https://tests.example:84433"))
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    with pytest.raises(InvalidArgument, match=r"broken\.pem.* cannot be used"):
        py_ort.InferenceSession(small_models.add(), browser=elsewhere(certificate=(broken, broken)))
    with pytest.raises(BrowserError, match=r"nothing can be served at 192\.0\.2\.77:0"):
        py_ort.InferenceSession(small_models.add(), browser=elsewhere(host="192.0.2.77"))


@pytest.mark.usefixtures("in_a_network")
def test_without_tls_it_says_what_lacks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "py_ort")
    options = elsewhere(certificate=None)
    with py_ort.InferenceSession(small_models.add(), providers=["wasm"], browser=options) as session:
        assert session.run(None, FEEDS)[0].tolist() == (X + 1).tolist()
    assert any("py_ort listens at 0.0.0.0" in text for text in caplog.messages)
    assert any("without TLS" in text for text in caplog.messages)
