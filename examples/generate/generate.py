"""Text of a decoder in a browser, printed as it comes: `python generate.py FOLDER PROMPT`.

FOLDER is one of onnxruntime-genai or of optimum, with its tokenizer.json (`pip install tokenizers`). Without one PROMPT
is tokens: "1 15043 29892".
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import py_ort


def main() -> None:
    parser = argparse.ArgumentParser(description="Text of a decoder in a browser, printed as it comes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("prompt")
    parser.add_argument("--provider", default="webgpu")
    parser.add_argument("--tokens", type=int, default=64, help="at most so many new ones")
    parser.add_argument("--temperature", type=float, help="draw tokens; by default the likeliest each")
    parser.add_argument("--seed", type=int)
    asked = parser.parse_args()

    model = asked.folder if (asked.folder / "genai_config.json").exists() else asked.folder / "model.onnx"
    encode, decode = tokenizer(asked.folder)
    # Whatever the folder's configuration says: what a search finds cannot be printed as it comes.
    one = {"num_beams": 1, "num_return_sequences": 1}
    drawing = {} if asked.temperature is None else {"do_sample": True, "temperature": asked.temperature, "top_p": 0.9}
    with py_ort.InferenceSession(model, providers=[asked.provider]) as session:
        start = time.perf_counter()
        tokens = encode(asked.prompt)
        generation = session.generate(tokens, max_new_tokens=asked.tokens, seed=asked.seed, **one, **drawing)
        for piece in pieces(generation, decode):
            print(piece, end="", flush=True)
        seconds, info = time.perf_counter() - start, generation.info
    count = info["counts"][0]
    print(f"\n\n{count} tokens in {seconds:.2f} s, the first after {info['prompt_ms']:.0f} ms; {info['finished'][0]}")


def tokenizer(folder: Path) -> tuple[Callable[[str], list[int]], Callable[[list[int]], str]]:
    """Return how text becomes tokens, and tokens text."""
    if not (folder / "tokenizer.json").exists():
        return lambda text: [int(word) for word in text.split()], lambda tokens: "".join(f"{t} " for t in tokens)
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: made.encode(text).ids, made.decode


def pieces(tokens: Iterable[int], decode: Callable[[list[int]], str]) -> Iterator[str]:
    """Give what each token adds to the text; letters of several tokens come with the last of them."""
    all_tokens: list[int] = []
    told = ""
    for token in tokens:
        all_tokens.append(token)
        text = decode(all_tokens)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            yield text[len(told) :]
            told = text


if __name__ == "__main__":
    main()
