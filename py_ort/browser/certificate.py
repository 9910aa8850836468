"""The certificate of our own pages, as browsers that we have started are told to trust it, and no other."""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
from pathlib import Path

from py_ort.exceptions import InvalidArgument

_PEM = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
#: In a certificate's first part: in front of its number, where there is one.
_VERSION = 0xA0
#: Its number, how it is signed, by whom, from when to when, and whose it is; behind these comes the key.
_IN_FRONT = 5


def key_hash(file: str) -> str:
    """Return what Chromium calls a certificate by: the SHA-256 of its public key (SubjectPublicKeyInfo), in base64.

    Args:
        file: PEM; of several certificates the first is the server's own.

    Raises:
        InvalidArgument: There is none in it.
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
    """Return where the content of an element of DER begins and ends."""
    size, begin = data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, begin = int.from_bytes(data[begin : begin + count], "big"), begin + count
    return begin, begin + size
