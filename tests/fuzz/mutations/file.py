"""Damage to the file itself, on its bytes."""

from __future__ import annotations

import random

from mutations.places import Changes, Damage

DAMAGES: Changes[Damage] = Changes()


@DAMAGES.add
def _flip(decide: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(decide.choice([1, 1, 1, 2, 5]) if data else 0):
        changed[decide.randrange(len(changed))] ^= 1 << decide.randrange(8)
    return bytes(changed)


@DAMAGES.add
def _not_text(decide: random.Random, data: bytes) -> bytes:
    """Replaces a letter by a byte that is invalid in text: in names, operators, domains, strings."""
    letters = [i for i, byte in enumerate(data) if chr(byte).isascii() and chr(byte).isalpha()]
    if not letters:
        return data
    at = decide.choice(letters)
    return data[:at] + b"\xff" + data[at + 1 :]


@DAMAGES.add
def _cut(decide: random.Random, data: bytes) -> bytes:
    return data[: decide.randrange(len(data))] if data else data


@DAMAGES.add
def _repeat(decide: random.Random, data: bytes) -> bytes:
    """Protobuf merges repeated fields."""
    at = decide.randrange(len(data)) if data else 0
    return data + data[at:]
