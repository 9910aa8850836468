"""LinearAttention and CausalConvWithState."""

from typing import Any

import numpy as np
from case import Case, r


def _heads(x: np.ndarray, count: int) -> np.ndarray:
    """[batch, tokens, heads * size] → [batch, heads, tokens, size]."""
    batch, tokens, width = x.shape
    return x.astype(np.float64).reshape(batch, tokens, count, width // count).swapaxes(1, 2)


def _recurrence(heads: int, kv_heads: int, rule: str, scale: float = 0, window: int = 0) -> Any:
    def run(q: Any, k: Any, v: Any, past: Any = None, decay: Any = None, beta: Any = None) -> tuple[Any, ...]:
        batch, tokens = q.shape[:2]
        queries, keys, values = _heads(q, heads), _heads(k, kv_heads), _heads(v, kv_heads)
        outer = max(heads, kv_heads)
        queries = np.repeat(queries, outer // heads, 1)
        size = keys.shape[3]
        state = np.zeros((batch, kv_heads, size, values.shape[3]))
        if past is not None:
            state = (past[-1] if window else past).astype(np.float64)
        states, rows = [np.zeros_like(state)] * window, []
        for t in range(tokens):
            key, value = keys[:, :, t], values[:, :, t]
            if "gated" in rule:
                state = state * np.exp(_heads(decay, kv_heads)[:, :, t])[..., None]
            if "delta" in rule:
                rate = beta[:, t].astype(np.float64)[..., None]
                value = rate * (value - np.einsum("bhk,bhkv->bhv", key, state))
            state = state + key[..., None] * value[:, :, None]
            states.append(state)
            shared = np.repeat(state, outer // kv_heads, 1)
            rows.append((scale or size**-0.5) * np.einsum("bhk,bhkv->bhv", queries[:, :, t], shared))
        y = np.stack(rows, 1).reshape(batch, tokens, -1).astype(np.float32)
        return y, (np.stack(states[-window:]) if window else state).astype(np.float32)

    return run


def _attention(
    heads: int,
    kv_heads: int,
    rule: str,
    *,
    tokens: int = 5,
    past: bool = True,
    window: int = 0,
    scale: float = 0.0,
    **sizes: int,
) -> Case:
    size, value_size = sizes.get("size", 8), sizes.get("value_size", 6)
    state = (2, kv_heads, size, value_size)
    inputs = [r(2, tokens, heads * size), r(2, tokens, kv_heads * size), r(2, tokens, kv_heads * value_size)]
    inputs.append(r(*((window,) if window else ()), *state) if past else None)  # type: ignore[arg-type]
    if "gated" in rule:
        inputs.append(r(2, tokens, kv_heads * (size if sizes.get("each") else 1), low=-1, high=0))
    elif "delta" in rule:
        inputs.append(None)  # type: ignore[arg-type]
    if "delta" in rule:
        inputs.append(r(2, tokens, kv_heads if sizes.get("rates", 1) else 1, low=0, high=0.3))
    attributes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": kv_heads, "update_rule": rule}
    attributes |= {"state_window": window} if window else {}
    attributes |= {"scale": scale} if scale else {}
    while inputs[-1] is None:
        inputs.pop()
    expected = _recurrence(heads, kv_heads, rule, scale, window)
    return Case("LinearAttention", inputs, attributes, expected, outputs=2, tolerance="normal", host=[])


def _causal(dilation: int = 1, window: int = 0, last: int = 0, activation: str = "none") -> Any:
    def run(x: Any, w: Any, bias: Any = None, past: Any = None) -> tuple[Any, ...]:
        channels, taps = w.shape[0], w.shape[2]
        states = (taps - 1) * dilation
        flat = x.reshape(*x.shape[:2], -1).swapaxes(1, 2) if last else x
        before = np.zeros((x.shape[0], channels, states))
        if past is not None:
            newest = past[-1] if window else past
            before = newest.reshape(*newest.shape[:2], -1).swapaxes(1, 2) if last else newest
        length = flat.shape[2]
        rows = np.concatenate([before, flat], 2).astype(np.float64)
        y = sum(w[:, 0, tap, None] * rows[:, :, tap * dilation : tap * dilation + length] for tap in range(taps))
        y = y if bias is None else y + bias[:, None]
        y = y / (1 + np.exp(-y)) if activation != "none" else y

        def shaped(z: Any) -> Any:
            return np.float32(z.swapaxes(1, 2).reshape(z.shape[0], z.shape[2], *x.shape[2:]) if last else z)

        kept = [
            rows[:, :, end : end + states] if end > 0 else 0 * before
            for end in range(length - max(window, 1) + 1, length + 1)
        ]
        return shaped(y), np.stack([shaped(k) for k in kept]) if window else shaped(kept[-1])

    return run


def _convolution(
    *shape: int,
    taps: int = 4,
    bias: bool = True,
    past: bool = True,
    activation: str = "silu",
    dilation: int = 1,
    window: int = 0,
    last: int = 0,
) -> Case:
    channels = int(np.prod(shape[2:])) if last else shape[1]
    states = (taps - 1) * dilation
    own = (shape[0], states, *shape[2:]) if last else (shape[0], channels, states)
    state = r(*((window, *own) if window else own)) if past else None
    attributes: dict[str, Any] = {"activation": activation}
    if dilation != 1 or window or last:
        attributes |= {"dilation": dilation, "state_window": window, "channels_last": last}
    inputs = [r(*shape), r(channels, 1, taps), r(channels) if bias else None, state]
    while inputs[-1] is None:
        inputs.pop()
    expected = _causal(dilation, window, last, activation)
    return Case("CausalConvWithState", inputs, attributes, expected, outputs=2, tolerance="normal", host=[])


CASES = [
    _attention(2, 2, "linear"),
    _attention(4, 2, "gated", past=False),
    _attention(2, 2, "gated", each=1),
    _attention(2, 2, "delta", scale=0.7),
    _attention(4, 2, "gated_delta", rates=0),
    _attention(4, 1, "gated_delta", each=1, size=33, value_size=70),
    _attention(1, 2, "gated_delta", tokens=1),
    _attention(2, 2, "gated_delta", window=3),
    _attention(2, 2, "linear", tokens=2, window=4),
    _convolution(2, 6, 7),
    _convolution(2, 6, 2, past=False, activation="none"),
    _convolution(1, 3, 1, taps=3, bias=False),
    _convolution(2, 70, 5, dilation=2),
    _convolution(2, 7, 6, last=1),
    _convolution(2, 7, 2, 3, last=1, dilation=3, activation="none"),
    _convolution(2, 6, 7, window=3),
    _convolution(2, 2, 6, window=4, last=1, past=False),
    _convolution(2, 6, 4, taps=1),
]
