"""Operators on the words of strings."""

import numpy as np
from case import MICROSOFT, Case

WORDS = ["abc  def ", " été à x", "b a b"]


def _case(strings: object, name: str = "", **attributes: object) -> Case:
    given = {"mark": 0, "mincharnum": 1, "pad_value": "#", **attributes}
    return Case("Tokenizer", [np.array(strings, object)], given, domain=MICROSOFT, name=name)


CASES = [
    *(_case(WORDS, f"{given}", separators=given) for given in ([" "], ["b", "a"], ["[ ,]+", "e"], [""])),
    _case(WORDS, "by spaces", mark=1, separators=[" "]),
    _case(WORDS, "characters", mark=1, separators=[""]),
    *(_case(WORDS, tokenexp=given) for given in (r"\w+", r"b+", r"b*", ".", r"\b\w\b", "^b", "[^ ]+$")),
    *(_case(WORDS, mincharnum=2, tokenexp=given) for given in (r"\w+", "[^ ]+")),
    *(_case(["foobar"], tokenexp=given) for given in ("foo|foobar", "(foobar|foo)", "fo+?")),
    _case([["a b", "c"], ["d", "e f g"]], "rank 2", tokenexp=r"\w+", mark=1),
    _case(["", ""], "empty strings", tokenexp=r"\w+", mark=1),
    _case(["a b", "  "], "one without words", tokenexp=r"\w+", mark=1),
    *(_case(np.zeros(shape), f"zeros {shape}", tokenexp="a") for shape in ((0,), (3, 0), (0, 3))),
]
