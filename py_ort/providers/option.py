"""Options of providers: declared once; `option_code.py` generates parsers, types, the C header and docs from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py_ort.exceptions import InvalidArgument

#: The largest value of an option that is a number.
LARGEST = 999_999_999


@dataclass(frozen=True)
class Enumeration:
    """The values of a choice.

    Attributes:
        name: Its name in C, after the provider's prefix.
        meanings: By value; "" needs no text.
        constant: Prefix of the values' names in C; by default the name in capitals.
        meaning: Explanation of the choice as a whole.
    """

    name: str
    meanings: Mapping[str, str]
    constant: str = ""
    meaning: str = ""


_NO_CHOICES = Enumeration("", {})


@dataclass(frozen=True)
class Option:
    """One option of a provider.

    Attributes:
        key: Its name.
        kind: "number", "flag", "choice" or "text" (a list of names, or one on each line).
        effect: For readers of the docs.
        default: Its value if none is given.
        choices: The values of a choice; "" is one of them if it is the default.
        compiles: The field of `CompileOptions` that it sets; a page does not receive it.
    """

    key: str
    kind: str
    effect: str
    default: str = "0"
    choices: Enumeration = _NO_CHOICES
    compiles: str = ""

    @property
    def values(self) -> tuple[str, ...]:
        """All values of a flag or a choice."""
        if self.kind == "flag":
            return ("0", "1")
        return (*(("",) if self.kind == "choice" and not self.default else ()), *self.choices.meanings)

    def text(self, value: Any, provider: str) -> str:
        """Return a value as a string.

        Raises:
            InvalidArgument: The option does not have this value.
        """
        if isinstance(value, bool):
            value = "1" if value else "0"
        elif self.kind == "flag" and isinstance(value, str) and value.lower() in ("true", "false"):
            value = "1" if value.lower() == "true" else "0"
        elif self.kind == "text" and not isinstance(value, str):
            value = "\n".join(value)
        text = str(value)
        if self.kind == "number":
            check_number(value, f"option {self.key} of {provider}", provider)
        if self.values and text not in self.values:
            known = ", ".join(value for value in self.values if value)
            raise InvalidArgument(
                f"option {self.key} of {provider} is one of {known}; not {value!r}", provider=provider
            )
        return text

    def read(self, text: str) -> str | tuple[str, ...]:
        """Return a text in the compiler's form: a tuple of names for a list."""
        return tuple(line for line in text.split("\n") if line) if self.kind == "text" else text


def check_number(value: Any, what: str, provider: str) -> None:
    """Check a value of an option that is a number.

    Raises:
        InvalidArgument: It is not a whole number from 0 to `LARGEST`.
    """
    text = str(value)
    digits = text.isascii() and text.isdigit()
    if not digits or len(text) > len(str(LARGEST)):
        raise InvalidArgument(f"{what} is a whole number from 0 to {LARGEST}, not {value!r}", provider=provider)
