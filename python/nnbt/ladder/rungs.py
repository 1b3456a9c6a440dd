"""RUNGS and Ladder: the rates from the published peak down to MLX, each with its share of above."""

from dataclasses import asdict, dataclass
from typing import Any

from nnbt.results.result import Result

LARGE_LOSS = 0.8  # a rung below this share of the rung above gets a cause


@dataclass(frozen=True)
class RungKind:
    """One row of RUNGS.

    `engine` measures the rung. A `ceiling` rung is measured by the engine whose rates are ceilings
    on the device; a rung with neither is computed. `missing` is shown for a metric that `engine`
    does not measure.
    """

    key: str
    label: str
    explain: str
    engine: str = ""
    ceiling: bool = False
    missing: str = ""

    @property
    def computed(self) -> bool:
        """Whether no engine measures it."""
        return not (self.engine or self.ceiling)


# fmt: off
RUNGS = {
    row.key: row
    for row in (
        RungKind("published", "published peak", "the vendor's figure, from data/chips.toml"),
        RungKind("clock", "clock-derived peak", "units x operations per cycle x measured clock"),
        RungKind("native", "native kernel",
            "fastest run (on a GPU the slope) of engine native or kernel: what the hardware does",
            ceiling=True),
        RungKind("library", "vendor library", "the best matrix product of BLAS or cuBLASLt",
            "library", missing="There is no vendor library for memory bandwidth."),
        RungKind("mlx", "MLX eager", "one MLX operation per evaluation", "mlx"),
        RungKind("mlx-compiled", "MLX compiled", "the same under mx.compile", "mlx-compiled"),
        RungKind("tried", "MLX, library preloaded",
            "MLX eager in a process with --try's library preloaded"),
    )
}
# fmt: on


@dataclass(frozen=True)
class Rung:
    """One rate in `unit` and what reached it (`by`), or the reason why there is none.

    `row` is the result behind a measured rung.
    """

    kind: RungKind
    rate: float | None = None
    unit: str = ""
    by: str = ""
    reason: str = ""
    verdict: str = ""
    row: Result | None = None


@dataclass(frozen=True)
class Loss:
    """A rung far below the one above: the share that is left, its cause, and what to do."""

    rung: str
    above: str
    share: float
    cause: str
    sentence: str
    advice: str


@dataclass(frozen=True)
class Ladder:
    """All rungs from the top down, and the causes of large losses."""

    metric: str
    device: str
    dtype: str
    unit: str
    rungs: tuple[Rung, ...]
    losses: tuple[Loss, ...] = ()

    def rung(self, key: str) -> Rung | None:
        """The rung of this kind, if the ladder has it."""
        return next((rung for rung in self.rungs if rung.kind.key == key), None)

    def row(self, key: str) -> Result | None:
        """The result behind a rung; None for a computed rung and for one without a rate."""
        found = self.rung(key)
        return None if found is None else found.row

    def above(self, rung: Rung) -> Rung | None:
        """The next rung above that has a rate."""
        higher = self.rungs[: self.rungs.index(rung)]
        if rung.kind.key == "tried":  # compares with MLX eager: the same program, another library
            higher = tuple(other for other in higher if other.kind.key != "mlx-compiled")
        return next((other for other in reversed(higher) if other.rate), None)

    def share_of_above(self, rung: Rung) -> float | None:
        """Rate over that of the rung above; None at the top and without a rate."""
        above = self.above(rung)
        return rung.rate / above.rate if rung.rate and above and above.rate else None

    def share_of_top(self, rung: Rung) -> float | None:
        """Rate over that of the highest rung with a rate."""
        top = next((other.rate for other in self.rungs if other.rate), None)
        return rung.rate / top if rung.rate and top else None

    @property
    def heading(self) -> dict[str, str]:
        """What all rungs have in common."""
        return {name: getattr(self, name) for name in ("metric", "device", "dtype", "unit")}

    def rows(self) -> list[dict[str, Any]]:
        """The rungs as JSON and CSV files hold them."""
        return [
            {
                "rung": rung.kind.key,
                **{name: getattr(rung, name) for name in ("rate", "by", "reason")},
                "verdict": rung.verdict or None,
                "share_of_above": self.share_of_above(rung),
                "share_of_top": self.share_of_top(rung),
            }
            for rung in self.rungs
        ]

    def as_dict(self) -> dict[str, Any]:
        """The form of the JSON file."""
        losses = [asdict(loss) for loss in self.losses]
        return {**self.heading, "rungs": self.rows(), "losses": losses}
