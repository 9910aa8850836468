"""The hash by which Chromium recognizes a certificate."""

from __future__ import annotations

from pathlib import Path

import pytest

from py_ort import BrowserOptions
from py_ort.browser.certificate import key_hash
from py_ort.exceptions import InvalidArgument

FILE = Path(__file__).parents[2] / "helpers/tls/certificate.pem"
KEY = FILE.with_name("key.pem")
#: openssl x509 -pubkey -noout -in FILE | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64
HASH = "8uDazzM+pPJxAFQogtNvbz4hTdnsWUpKqFvDP0QRqHw="


def test_the_first_certificate_of_a_file_counts(tmp_path: Path) -> None:
    assert key_hash(str(FILE)) == HASH
    chain = tmp_path / "chain.pem"
    other = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
    chain.write_text(f"{KEY.read_text()}Subject: CN=\u00e4\n{FILE.read_text()}{other}", encoding="utf-8")
    assert key_hash(str(chain)) == HASH


@pytest.mark.parametrize("text", ["", "none", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate(tmp_path: Path, text: str) -> None:
    file = tmp_path / "none.pem"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=r"the certificate .*none\.pem cannot be read"):
        key_hash(str(file))


def test_chromium_of_a_page_of_ours_takes_it() -> None:
    flag = f"--ignore-certificate-errors-spki-list={HASH}"
    options = BrowserOptions(host="127.0.0.1", certificate=(str(FILE), str(KEY)))
    assert flag in options.command_line() and flag in options.flags_elsewhere()
    assert flag not in options.flags_for_any_page()
    assert not [one for one in BrowserOptions(host="127.0.0.1").flags_elsewhere() if "certificate" in one]
