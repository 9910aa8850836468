"""Seed after seed: `python tests/fuzz/campaign.py --minutes 30` (`make fuzz`). Reports each fault once, made small."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator

import mutated_files
import mutated_models
import operator_graphs
import wrong_operands
from known import known
from native_comparison import Judge, Trial
from report import report

KINDS = ("models", "graphs", "operands", "files")


def trials(kind: str, seed: int, provider: str, judge: Judge) -> list[Trial]:
    """Return the trials of a seed."""
    if kind == "models":
        return [mutated_models.trial(seed, provider)[2]]
    if kind == "operands":
        return [Trial(*wrong_operands.drawn(seed), provider, 99)]
    return operator_graphs.trials(seed, provider, judge.native, (0, 1, 2, 3, 99) if provider == "wasm" else (0, 99))


def faults(kind: str, provider: str, seeds: Iterator[int], told: set[str], counts: Counter[str]) -> Iterator[str]:
    """Yield a report on each new fault.

    Args:
        kind: "models" (mutated), "graphs" (random), "operands" (of wrong sizes) or "files" (damaged, in a page).
        provider: The provider to run them on.
        seeds: Seeds of the trials.
        told: Faults that are known already; new ones are added.
        counts: Counts of trials' results, to be increased.
    """
    if kind == "files":
        yield from mutated_files.faults(provider, seeds, told, counts)
        return
    judge = Judge(valid=kind == "graphs", strict=kind == "operands")
    try:
        for seed in seeds:
            for trial in trials(kind, seed, provider, judge):
                finding = judge.judge(trial)
                if finding is None or (finding.kind == "differs" and known(trial.model)):
                    continue
                # Differences have no place that distinguishes them: each seed counts separately.
                mark = f"differs {kind} {seed}" if finding.kind == "differs" else finding.kind
                if mark not in told:
                    told.add(mark)
                    yield report(judge, trial, finding, f"{kind} {seed}")
    finally:
        counts.update(judge.counts)
        judge.close()


def _seeds(first: int, last: int | None, until: float) -> Iterator[int]:
    seed = first
    while (last is None or seed < last) and time.monotonic() < until:
        yield seed
        seed += 1


def main() -> None:
    """Run for some minutes, or some seeds; the status is nonzero if faults were found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long, in all (10)")
    parser.add_argument("--seeds", default="0:", help="FIRST:LAST, or one number (0:)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="models, graphs, operands, files (all)")
    parser.add_argument("--provider", action="append", choices=("wasm", "webgpu"), help="(both)")
    given = parser.parse_args()
    first, colon, last = given.seeds.partition(":")
    end = int(last) if last else None if colon else int(first) + 1
    parts = [(kind, name) for name in given.provider or ("wasm", "webgpu") for kind in given.kind or KINDS]
    told: set[str] = set()
    for number, (kind, provider) in enumerate(parts):
        began, counts = time.monotonic(), Counter[str]()
        share = given.minutes * 60 / len(parts)
        for text in faults(kind, provider, _seeds(int(first), end, began + share), told, counts):
            print(f"\n=== {text}\n", flush=True)
        seconds = time.monotonic() - began
        tallies = ", ".join(f"{n} {what}" for what, n in counts.most_common())
        print(f"{number + 1}/{len(parts)} {kind} on {provider}: {tallies} in {seconds:.0f} s", flush=True)
    print(f"{len(told)} faults" if told else "no faults")
    sys.exit(bool(told))


if __name__ == "__main__":
    main()
