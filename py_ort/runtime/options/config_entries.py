"""Configuration entries of sessions and runs: strings by name."""

from __future__ import annotations

from py_ort.exceptions import InvalidArgument

#: onnxruntime's limits.
_KEY, _VALUE = 1024, 8192


class ConfigEntries(dict[str, str]):
    """The entries of one object; `owner` is its class's name, for messages."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner

    def add(self, key: str, value: str) -> None:
        """Set an entry.

        Raises:
            TypeError: Key or value is not a string.
            InvalidArgument: The key is empty, or key or value is too long.
        """
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"configuration entries are strings, not {key!r}: {value!r}")
        if not 0 < len(key) <= _KEY or len(value) > _VALUE:
            raise InvalidArgument(f"a key has 1 to {_KEY} characters and a value up to {_VALUE}: {key[:40]!r}")
        self[key] = value

    def get(self, key: str) -> str:  # type: ignore[override]
        """Return an entry.

        Raises:
            InvalidArgument: The entry was not set.
        """
        if key not in self:
            raise InvalidArgument(f"{self.owner} does not have configuration with key: {key}")
        return self[key]
