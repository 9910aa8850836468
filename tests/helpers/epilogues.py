"""The attribute `epilogue` of products, in the passes' form."""

from collections.abc import Sequence
from typing import Literal

from py_ort.ir.epilogue import Epilogue


def epilogue(
    function: str = "",
    numbers: Sequence[float] = (),
    *,
    residual: Literal["first", "last"] | None = None,
    offset: float | None = None,
) -> dict[str, str]:
    """Return the attribute: a residual first or last, a function with its first parameters, an added number."""
    made = Epilogue().plus_residual() if residual == "first" else Epilogue()
    made = made.then(function, numbers) if function else made
    made = made if offset is None else made.plus(offset)
    made = made.plus_residual() if residual == "last" else made
    return {"epilogue": made.program} if made else {}
