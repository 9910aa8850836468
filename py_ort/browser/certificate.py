"""The hash of our pages' certificate, by which browsers that we start trust this certificate and no other."""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
from pathlib import Path

from py_ort.exceptions import InvalidArgument

_PEM = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
#: DER tag of the optional version, the first element of a certificate's signed part.
_VERSION = 0xA0
#: Elements before the key: serial number, signature algorithm, issuer, validity and subject.
_IN_FRONT = 5


def key_hash(file: str) -> str:
    """Return Chromium's name of a certificate: the SHA-256 of its public key (SubjectPublicKeyInfo), in base64.

    Args:
        file: A PEM file. If it has several certificates, the first is the server's own.

    Raises:
        InvalidArgument: The file has no certificate.
    """
    try:
        found = _PEM.search(Path(file).read_text(encoding="ascii", errors="replace"))
        if found is None:
            raise ValueError("it has no line BEGIN CERTIFICATE")
        whole = ssl.PEM_cert_to_DER_cert(found.group())
        signed, _ = _content(whole, 0)
        at, _ = _content(whole, signed)
        for _ in range(_IN_FRONT + (whole[at] == _VERSION)):
            _, at = _content(whole, at)
        _, end = _content(whole, at)
    except (OSError, ValueError, IndexError) as e:
        raise InvalidArgument(f"the certificate {file} cannot be read: {e}") from e
    return base64.b64encode(hashlib.sha256(whole[at:end]).digest()).decode()


def _content(data: bytes, at: int) -> tuple[int, int]:
    """Return begin and end of the content of a DER element."""
    size, begin = data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, begin = int.from_bytes(data[begin : begin + count], "big"), begin + count
    return begin, begin + size
