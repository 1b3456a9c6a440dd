"""nnbt.timing.slope: the line through times of K units, and what it proves."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from nnbt.spec.workload import Answer, Workload
from nnbt.timing.slope import (
    NO_MEMORY,
    NO_TIME,
    Slope,
    choose_k,
    fit,
    headline_share,
    measure_slope,
    proves_work,
)

FLOOR = 20e-6


def line(overhead_s: float, unit_s: float, *ks: int) -> dict[int, float]:
    return {k: overhead_s + unit_s * k for k in ks}


@dataclass
class FakeMachine:
    """Times steps by a formula; a step is its k."""

    time_s: Callable[[int], float]
    timed: list[int] = field(default_factory=list)

    def once(self, step: Callable[[], int]) -> float:
        self.timed.append(step())
        return self.time_s(self.timed[-1])

    def workload(self, largest_k: int = 8, no_slope: str = "") -> Workload:
        return Workload(
            step=lambda k: lambda: k, units=1, unit_work=1, largest_k=largest_k, floor=None,
            check=lambda: Answer("nothing"), unit_name="unit", sizes={}, no_slope=no_slope,
        )  # fmt: skip

    def slope(
        self, unit_s: float = 1e-3, budget_s: float = 1.0, **more: object
    ) -> tuple[Slope | None, str]:
        workload = self.workload(**more)  # type: ignore[arg-type]
        return measure_slope(workload, self.once, unit_s=unit_s, floor_s=FLOOR, budget_s=budget_s)


@pytest.mark.parametrize("overhead_s", [0.0, 30e-6, 1e-4])
def test_fit_finds_the_line(overhead_s: float) -> None:
    found = fit(line(overhead_s, 1e-3, 1, 2, 4, 8), FLOOR)
    assert found.unit_s == pytest.approx(1e-3)
    assert found.overhead_s == pytest.approx(overhead_s, abs=1e-12)
    assert found.residual == pytest.approx(0, abs=1e-9)
    assert found.doubling == pytest.approx(2)
    assert proves_work(found) is True


def test_fit_weighs_each_k_by_its_relative_error() -> None:
    found = fit(line(0, 1e-3, 1, 2, 4) | {8: 8.8e-3}, FLOOR)
    plain = 1e-3 * 1.13  # unweighted least squares follows the largest K
    assert 1e-3 < found.unit_s < plain
    assert found.residual > 0.01


def test_fit_of_one_point_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        fit({1: 1e-3}, FLOOR)


@pytest.mark.parametrize(
    ("seconds", "proof"),
    [
        (line(0, 1e-3, 1, 2, 4, 8), True),
        (line(1e-3, 0.0, 1, 2, 4, 8), False),  # merged: any K takes the same time
        ({1: 1e-3, 2: 1.5e-3, 4: 2.2e-3, 8: 3.3e-3}, False),
        ({1: 1e-3, 2: 2e-3, 4: 4e-3, 8: 10e-3}, False),  # slower the longer it takes
        (line(FLOOR, 1e-7, 1, 2, 4, 8), None),  # hidden by the evaluation
    ],
)
def test_what_a_slope_proves(seconds: dict[int, float], proof: bool | None) -> None:
    assert proves_work(fit(seconds, FLOOR)) is proof


def test_a_constant_cost_of_a_few_evaluations_is_no_missing_work() -> None:
    found = fit(line(9 * FLOOR, 1e-4, 1, 2, 4, 8), FLOOR)
    assert found.doubling == pytest.approx(2)
    assert proves_work(fit(line(100 * FLOOR, 1e-4, 1, 2, 4, 8), FLOOR)) is False


@pytest.mark.parametrize(
    ("budget_s", "largest_k", "ks"),
    [
        (1.0, 8, [1, 2, 4, 8]),
        (1.0, 4, [1, 2, 4]),
        (1.0, 1, []),  # one K is no slope
        (13e-3, 8, [1, 2]),  # 4 passes over 1 + 2 units of 1 ms
        (1e-3, 8, []),
    ],
)
def test_k_fits_budget_and_memory(budget_s: float, largest_k: int, ks: list[int]) -> None:
    assert choose_k(1e-3, budget_s, largest_k) == ks


def test_honest_work_is_timed_within_its_budget() -> None:
    machine = FakeMachine(lambda k: FLOOR + 1e-3 * k)
    found, why = machine.slope(budget_s=0.2)
    assert found is not None
    assert why == ""
    assert proves_work(found) is True
    assert sum(machine.timed) * 1e-3 <= 0.2
    assert set(machine.timed) == {1, 2, 4, 8}


def test_units_that_an_evaluation_hides_get_more_values_of_k() -> None:
    machine = FakeMachine(lambda k: FLOOR + 5e-6 * k)
    found, _ = machine.slope(unit_s=25e-6, largest_k=64)
    assert max(found.seconds) == 64
    assert found.unit_s == pytest.approx(5e-6)
    assert found.overhead_s == pytest.approx(FLOOR)


def test_a_disturbed_slope_is_taken_again() -> None:
    disturbed = iter([1.5] * 20)
    machine = FakeMachine(lambda k: 1e-3 * k * (next(disturbed, 1.0) if k < 8 else 1.0))
    found, _ = machine.slope(budget_s=0.1)
    assert found is not None
    assert proves_work(found) is True


def test_work_that_is_skipped_stays_skipped() -> None:
    machine = FakeMachine(lambda _: 1e-3)
    found, _ = machine.slope()
    assert found is not None
    assert proves_work(found) is False
    assert len(machine.timed) > 500  # a second of retries, a millisecond each


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"no_slope": "a window has no units"}, "a window has no units"),
        ({"budget_s": 1e-3}, NO_TIME),
        ({"largest_k": 1}, NO_MEMORY),
    ],
)
def test_a_slope_that_can_not_be_taken_says_why(more: dict[str, object], why: str) -> None:
    machine = FakeMachine(lambda k: 1e-3 * k)
    assert machine.slope(**more) == (None, why)  # type: ignore[arg-type]
    assert machine.timed == []


def test_a_headline_off_the_slope_is_measured_on() -> None:
    """Clocks that had to rise again: 50 timings at a quarter of the clock, then all of it."""
    slow = iter([4.0] * 50)
    machine = FakeMachine(lambda k: 1e-3 * k * next(slow, 1.0))
    workload = machine.workload()
    found, _ = measure_slope(
        workload, machine.once, unit_s=1e-3, floor_s=FLOOR, budget_s=0.1, best_s=1e-3
    )
    assert found.unit_s == pytest.approx(1e-3)
    assert headline_share(found, 1, 1e-3, FLOOR) == pytest.approx(1.0)


def test_a_floor_that_overlaps_with_the_work_is_not_taken_off_the_headline() -> None:
    """Seen on two idle processors: waking threads takes 82 us alone, 25 beside work of 111."""
    seen = fit(line(25e-6, 111e-6, 1, 2, 4, 8, 16), 82e-6)
    assert headline_share(seen, 1, 114e-6, 82e-6) == pytest.approx(0.8, abs=0.01)


def test_the_fastest_of_many_runs_is_no_point_of_the_line() -> None:
    machine = FakeMachine(lambda k: 1e-3 * k)
    found, _ = measure_slope(
        machine.workload(), machine.once, unit_s=1e-3, floor_s=FLOOR, budget_s=1.0, best_s=5e-4
    )
    assert found.seconds == line(0.0, 1e-3, 1, 2, 4, 8)


def test_long_work_is_tried_again_three_times_before_it_is_called_undone() -> None:
    """A second was one try of 2 units of 0.5 s, and a compiler beside it was enough."""
    disturbed = iter([1.0, 1.0, 1.9, 1.0, 1.9, 1.0, 1.9, 1.0])
    machine = FakeMachine(lambda k: 0.5 * k * next(disturbed, 1.0))
    found, _ = measure_slope(
        machine.workload(2), machine.once, unit_s=0.5, floor_s=FLOOR, budget_s=3.5
    )
    assert found is not None
    assert proves_work(found) is True


def test_two_points_that_a_constant_cost_bends_get_a_third() -> None:
    """Integer kernels of 4 ms beside 3 ms of mapping temporaries: t(2) / t(1) is 1.57."""
    machine = FakeMachine(lambda k: 3e-3 + 4e-3 * k)
    found, _ = machine.slope(4e-3, 0.03)
    assert sorted(found.seconds) == [1, 2, 4]
    assert found.unit_s == pytest.approx(4e-3)
    merged, _ = FakeMachine(lambda _: 4e-3).slope(4e-3, 0.03)
    assert merged is not None
    assert proves_work(merged) is False


def test_a_headline_is_not_set_against_a_slope_that_proves_nothing() -> None:
    hidden = fit(line(FLOOR, 1e-7, 1, 2, 4, 8), FLOOR)
    merged = fit(line(1e-3, 0.0, 1, 2, 4, 8), FLOOR)
    assert [headline_share(slope, 1, 1e-9, FLOOR) for slope in (hidden, merged)] == [None, None]
