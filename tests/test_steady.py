"""A second window of timed runs where the first scatters, reported where it does not itself."""

from collections.abc import Iterator, Sequence

import pytest

import nnbt
from fake_measure import STEADY, FakeMeasure, FakeSamples
from nnbt.timing.window import steady_window

DRIFTING = [1 + i / 100 for i in range(20)]
SCATTERED = [1 + i / 10 for i in (3, 11, 0, 7, 5, 9, 1, 10, 2, 6, 8, 4)]
TWO_STATES = [1.0, 1.01, 1.5, 1.0, 1.51, 1.01, 1.0, 1.5, 1.0, 1.01, 1.0, 1.5]


def samples(pattern: Sequence[float], unit_ns: int = 1_000_000) -> FakeSamples:
    times = [round(unit_ns * factor) for factor in pattern]
    return FakeSamples(times, sum(times), 2, "budget", [], first_run_ns=7 * unit_ns)


def test_a_steady_window_is_the_only_one() -> None:
    windows = iter([samples(STEADY)])
    chosen, first = steady_window(lambda: next(windows))
    assert chosen.samples_ns == samples(STEADY).samples_ns
    assert first is None


@pytest.mark.parametrize(
    ("pattern", "code", "amount"),
    [
        (DRIFTING, "DRIFT", 1.175 / 1.015 - 1),
        (SCATTERED, "WIDE_INTERVAL", 0.35 / 1.55),
        (TWO_STATES, "BIMODAL", 1.5025 / 1.00375 - 1),
    ],
)
@pytest.mark.parametrize("unit_ns", [500_000, 2_000_000])
def test_the_second_window_counts_whether_faster_or_slower(
    pattern: Sequence[float], code: str, amount: float, unit_ns: int
) -> None:
    scattered = samples(pattern)
    windows = iter([scattered, samples(STEADY, unit_ns)])
    chosen, first = steady_window(lambda: next(windows))
    assert chosen.samples_ns == samples(STEADY, unit_ns).samples_ns
    assert first.scatter.code == code
    assert first.scatter.amount == pytest.approx(amount, abs=1e-6)
    assert list(first.samples_ns) == scattered.samples_ns
    assert first.which == "first"
    assert first.window_s == pytest.approx(scattered.window_ns * 1e-9)


def test_what_scatters_twice_is_reported_as_it_came_first() -> None:
    windows = iter([samples(SCATTERED), samples(DRIFTING)])
    chosen, other = steady_window(lambda: next(windows))
    assert chosen.samples_ns == samples(SCATTERED).samples_ns
    assert other.which == "second"
    assert list(other.samples_ns) == samples(DRIFTING).samples_ns
    assert other.scatter.code == "DRIFT"


def test_a_second_window_that_fails_or_is_too_short_leaves_the_first() -> None:
    def fails() -> FakeSamples:
        if seen:
            raise RuntimeError("no more")
        seen.append(1)
        return samples(SCATTERED)

    seen: list[int] = []
    chosen, other = steady_window(fails)
    assert (chosen.samples_ns, other) == (samples(SCATTERED).samples_ns, None)
    windows = iter([samples(SCATTERED), samples([1.0, 1.0])])
    chosen, other = steady_window(lambda: next(windows))
    assert chosen.samples_ns == samples(SCATTERED).samples_ns
    assert (other.which, other.scatter) == ("second", None)


class _Calming(FakeMeasure):
    """Its first adaptive window is `SCATTERED`, the others are steady."""

    windows: Iterator[Sequence[float]]

    def __call__(self, step: object, **more: object) -> FakeSamples:  # type: ignore[override]
        if "budget_s" in more:
            self.pattern = next(self.windows, STEADY)
        return super().__call__(step, **more)  # type: ignore[arg-type]


def calming() -> _Calming:
    measure = _Calming()
    measure.windows = iter([SCATTERED])
    return measure


def _row(measure: FakeMeasure) -> nnbt.Result:
    (row,) = nnbt.run("bandwidth", "cpu", "float32", [64], cpu_workers=1, measure=measure).results
    return row


def test_the_row_says_that_it_was_timed_twice_and_keeps_both() -> None:
    row = _row(calming())
    assert "WIDE_INTERVAL" not in [reason.code for reason in row.reasons]
    assert len(row.notes) == 1 + len(_row(FakeMeasure()).notes)
    assert row.other_window.which == "first"
    assert row.other_window.scatter.code == "WIDE_INTERVAL"
    assert len(row.other_window.samples_ns) == len(SCATTERED)
    assert row.first_run_s == pytest.approx(2e-3)
    assert len(row.samples_ns) == len(STEADY)


@pytest.mark.parametrize("more", [{"runs": 12}, {"checks": False}])
def test_counted_runs_and_unchecked_ones_are_timed_once(more: dict[str, int]) -> None:
    measure = calming()
    (row,) = nnbt.run(
        "bandwidth", "cpu", "float32", [64], cpu_workers=1, measure=measure, **more
    ).results
    assert row.other_window is None
    assert row.samples_ns[0] == 1_020_000 * 13 // 10
