"""Hidden SMT: reported where a pair of CPUs shows it, and not where other work takes the time."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from nnbt import _native
from nnbt.machine import shared_cores
from nnbt.machine.shared_cores import (
    CLOCK_CHAIN,
    Crowd,
    Pair,
    SharedCores,
    find_shared_cores,
    measure_pair,
    port_chain,
)

FMA = "avx2_float32"
Guest = dict[int, int]
"""Core of each CPU."""


class Machine:
    """Stands for `measure`: times of pinned chains on a guest with these cores.

    On a `busy` one each second thread waits for the first, whatever it does. On a `moved` one the
    host gives each busy CPU a core while there are any left, half as many as CPUs.
    """

    def __init__(
        self, cores: Guest, *, busy: bool = False, moved: bool = False, smt_gain: float = 1.0
    ) -> None:
        self.cores, self.busy, self.moved, self.smt_gain = cores, busy, moved, smt_gain
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, step: Any, *, warmup: int, runs: int) -> Any:
        assert warmup > 0
        cpus = tuple(step.cpus)
        self.asked.append(cpus)
        same_core = len({self.cores[cpu] for cpu in cpus}) < len(cpus)
        if self.moved:
            same_core = len(cpus) > len(self.cores) // 2
        waits = len(cpus) > 1 and (self.busy or (same_core and step.name != CLOCK_CHAIN))
        slower = 2 / self.smt_gain if waits else 1.0
        return SimpleNamespace(samples_ns=[round(1_000_000 * slower)] * runs)

    @property
    def pairs(self) -> list[tuple[int, ...]]:
        return list(dict.fromkeys(cpus for cpus in self.asked if len(cpus) > 1))


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    def make(cores: Guest, *, seen: int | None = None, pins: bool = True, **more: Any) -> Machine:
        def make_peak(name: str, threads: int, iterations: int = 0, *, cpus: Any = ()) -> Any:
            del threads
            where = list(cpus) if pins else [-1] * len(cpus)
            return SimpleNamespace(name=name, cpus=where, iterations=iterations or 1000)

        monkeypatch.setattr(_native, "make_peak", make_peak)
        monkeypatch.setattr(_native, "allowed_cpus", lambda: list(cores))
        monkeypatch.setattr(_native, "allowed_cores", lambda: seen or len(cores))
        return Machine(cores, **more)

    return make


NEIGHBOURS = {cpu: cpu // 2 for cpu in range(6)}
HALVES = {cpu: cpu % 4 for cpu in range(8)}
WHOLE = {cpu: cpu for cpu in range(6)}


@pytest.mark.parametrize("cores", [NEIGHBOURS, HALVES, {3: 0, 9: 0}])
@pytest.mark.parametrize("smt_gain", [1.0, 1.25])
def test_shared_cores_are_found(
    cores: Guest, smt_gain: float, guest: Callable[..., Machine]
) -> None:
    found = find_shared_cores(guest(cores, smt_gain=smt_gain), FMA, len(cores))
    assert found.cores == len(set(cores.values()))
    assert all(cores[a] == cores[b] for a, b in (pair.cpus for pair in found.pairs))
    first = found.pairs[0].cpus
    for figure in (f"CPUs {first[0]} and {first[1]}", f"{smt_gain:.2f} times", "2.00 times"):
        assert figure in found.sentence


def test_cores_of_their_own_after_all_partners_were_tried(guest: Callable[..., Machine]) -> None:
    machine = guest(WHOLE)
    assert find_shared_cores(machine, FMA, 6) is None
    assert sorted(machine.pairs[:-1]) == [(0, other) for other in range(1, 6)]
    assert machine.pairs[-1] == tuple(WHOLE)


def test_a_busy_machine_is_no_claim(guest: Callable[..., Machine]) -> None:
    """Two threads take turns there, but so do those that leave the ports free."""
    for cores in (WHOLE, NEIGHBOURS):
        assert find_shared_cores(guest(cores, busy=True), FMA, 6) is None


@pytest.mark.parametrize("smt_gain", [1.0, 1.2])
def test_moved_cpus_are_found_by_using_all(smt_gain: float, guest: Callable[..., Machine]) -> None:
    """Seen on 16 CPUs of a Xeon guest: no pair shares a core, all together do half."""
    many = {cpu: cpu for cpu in range(16)}
    found = find_shared_cores(guest(many, moved=True, smt_gain=smt_gain), FMA, 16)
    assert (found.cpus, found.cores, found.pairs) == (16, 8, ())
    for figure in ("16 CPUs", "8 cores", f"{8 * smt_gain:.1f} times", "16.0 times"):
        assert figure in found.sentence


def test_a_crowd_that_is_busy_or_has_own_cores_is_no_claim(guest: Callable[..., Machine]) -> None:
    many = {cpu: cpu for cpu in range(16)}
    for machine in (guest(many), guest(many, busy=True)):
        assert find_shared_cores(machine, FMA, 16) is None
        assert tuple(many) in machine.asked


@pytest.mark.parametrize(
    ("gain", "control", "shared"),
    [
        (7.6, 15.0, True),
        (7.6, 12.0, False),  # they lacked time
        (10.0, 15.0, False),  # a clock that vectors lower
        (5.0, 15.0, False),  # a quota, or three threads a core
    ],
)
def test_what_a_crowd_must_show(gain: float, control: float, shared: bool) -> None:
    assert Crowd(16, FMA, gain, control).shared is shared


def test_tiles_are_no_measure_of_shared_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        SimpleNamespace(name=name, available=name != "avx512_float32", dtype="float32")
        for name in ("sse2_float32", FMA, "avx512_float32", "sme_float32")
    ]
    monkeypatch.setattr(_native, "peak_chains", lambda: rows)
    assert [port_chain(name) for name in ("amx_int8", "sme_float32", "neon_float32")] == [
        FMA,
        FMA,
        "neon_float32",
    ]


def test_only_the_cpus_of_the_threads_are_tried(guest: Callable[..., Machine]) -> None:
    machine = guest(HALVES)
    assert find_shared_cores(machine, FMA, 4) is None
    assert {cpu for pair in machine.pairs for cpu in pair} == {0, 1, 2, 3}
    found = find_shared_cores(guest(HALVES), FMA, 6)
    assert (found.cpus, found.cores) == (6, 4)


@pytest.mark.parametrize(
    "options", [{"cores": NEIGHBOURS, "seen": 3}, {"cores": NEIGHBOURS, "pins": False}]
)
def test_full_topology_or_no_pinning(
    options: dict[str, Any], guest: Callable[..., Machine]
) -> None:
    machine = guest(**options)
    assert find_shared_cores(machine, FMA, 6) is None
    assert machine.asked == []


def test_one_cpu_has_no_pair(guest: Callable[..., Machine]) -> None:
    assert find_shared_cores(guest({0: 0}), FMA, 1) is None


def test_whole_cores_are_recognized_after_a_few_rounds(guest: Callable[..., Machine]) -> None:
    machine = guest(WHOLE)
    pair = measure_pair(machine, FMA, (0, 1))
    assert (pair.gain, pair.shared) == (2.0, False)
    assert machine.asked.count((0, 1)) == 2 * shared_cores.LEAST_ROUNDS
    machine = guest(NEIGHBOURS)
    assert measure_pair(machine, FMA, (0, 1)).shared
    assert machine.asked.count((0, 1)) == 2 * shared_cores.ROUNDS


@pytest.mark.parametrize(
    ("gain", "control", "shared"),
    [
        (1.0, 2.0, True), (1.35, 1.7, True), (1.36, 2.0, False), (1.0, 1.69, False),
        (2.0, 2.0, False),
    ],
)  # fmt: skip
def test_both_chains_must_agree(gain: float, control: float, shared: bool) -> None:
    assert Pair((0, 1), FMA, gain, control).shared is shared
    assert not Pair((0, 1), FMA, gain, control, calm=False).shared


def test_threads_that_differ_alone_are_no_evidence(guest: Callable[..., Machine]) -> None:
    class Uneven(Machine):
        def __call__(self, step: Any, *, warmup: int, runs: int) -> Any:
            samples = super().__call__(step, warmup=warmup, runs=runs)
            if list(step.cpus) == [1]:
                samples.samples_ns = [round(time * 0.9) for time in samples.samples_ns]
            return samples

    guest(NEIGHBOURS)
    assert find_shared_cores(Uneven({0: 0, 1: 0}), FMA, 2) is None


def test_a_claim_is_confirmed(guest: Callable[..., Machine]) -> None:
    class Once(Machine):
        """Looks shared in the first measurement of the pair only."""

        def __call__(self, step: Any, *, warmup: int, runs: int) -> Any:
            if len(self.asked) == 6 * shared_cores.ROUNDS:
                self.cores = {0: 0, 1: 1}
            return super().__call__(step, warmup=warmup, runs=runs)

    guest({0: 0, 1: 0})
    assert find_shared_cores(Once({0: 0, 1: 0}), FMA, 2) is None
    machine = guest({0: 0, 1: 0})
    assert find_shared_cores(machine, FMA, 2) is not None
    rounds = shared_cores.CONFIRMATIONS * shared_cores.ROUNDS
    assert machine.asked.count((0, 1)) == 2 * rounds


def test_search_time_limit(guest: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1000, 5))
    monkeypatch.setattr(shared_cores.time, "monotonic", lambda: next(seconds))
    machine = guest(WHOLE)
    assert find_shared_cores(machine, FMA, 6) is None
    assert len(machine.pairs) < 5


def test_more_pairs_are_counted() -> None:
    pairs = tuple(Pair((i, i + 1), FMA, 1.0, 2.0) for i in (0, 2, 4))
    found = SharedCores(pairs, 6)
    assert found.cores == 3
    assert "CPUs 0 and 1 and 2 more pairs" in found.sentence


def test_threads_are_pinned_to_the_named_cpus() -> None:
    cpu = _native.allowed_cpus()[-1]
    step = _native.make_peak(CLOCK_CHAIN, 2, 1, cpus=[cpu, 10**5])
    assert step.cpus in ([cpu, -1], [-1, -1])  # not all systems pin
    assert step.threads == 2
