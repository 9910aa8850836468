"""A device's rates, measured on a machine that also does other work."""

from __future__ import annotations

from py_ort.bench.floor import Device, settled

BEST = Device(0.3, 0.01, 8e9, 1.3e9, 3e9, 2e9)


def slowed(by: float) -> Device:
    return Device(0.3 * by, 0.01 * by, 8e9 / by, 1.3e9 / by, 3e9 / by, 2e9 / by)


def test_the_best_of_several_rounds():
    """Not the first round, which was slow, nor the mean; and at most two rounds without an improvement."""
    rounds = iter([slowed(30), slowed(2), BEST, slowed(9), slowed(1.1), slowed(0.01)])
    assert settled(lambda: next(rounds)) == BEST


def test_what_never_settles_is_not_known():
    rounds = iter(2.0**-i for i in range(100))
    assert settled(lambda: slowed(next(rounds))) is None
    assert next(rounds) == 2.0**-8


def test_each_number_is_the_best_by_itself():
    slow_copies = Device(0.9, 0.01, 8e9, 1.3e8, 3e9, 2e9)
    slow_sums = Device(0.3, 0.04, 8e8, 1.3e9, 1e9, 1e9)
    rounds = iter([slow_copies, slow_sums, slow_copies, slow_sums])
    assert settled(lambda: next(rounds)) == BEST
