"""Case: what is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FIELDS = ("metric", "device", "engine", "dtype", "n")  # of every case; others have only some


@dataclass(frozen=True)
class Case:
    """What is measured: results of equal cases can be compared.

    `n` is the requested size; `params` are those of some metrics only (op, graph_steps,
    cpu_workers, data, tf32).
    """

    metric: str
    device: str
    engine: str
    dtype: str
    n: int
    params: Mapping[str, int | str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> str:
        """Identifies the case, also in later versions: equal cases have equal keys."""
        return " ".join(f"{name}={value}" for name, value in sorted(self.as_dict().items()))

    def as_dict(self) -> dict[str, Any]:
        """All fields and params in one dict."""
        return {name: getattr(self, name) for name in FIELDS} | {**self.params}

    def without(self, *names: str) -> dict[str, Any]:
        """`as_dict` without these keys, to find results that agree in everything else."""
        return {key: value for key, value in self.as_dict().items() if key not in names}
