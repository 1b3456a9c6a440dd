"""Measured ceilings of this machine, kept between runs: what `% ceiling` compares with.

A ceiling is the best rate that a cell marked `ceiling` reached. They are kept in the
user's cache folder, one file per machine, or for one process where that cannot be written.
"""

import contextlib
import datetime as dt
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

from nnbt.machine.files import write_atomically
from nnbt.spec.case import Case
from nnbt.spec.precision import unit_dtype

SCHEMA = 1
KEEP_DAYS = 90  # after this a lower rate replaces a higher one: drivers and firmware change
_ANY = "any"


@dataclass(frozen=True)
class Measured:
    """The best rate, in the base unit of the metric, what reached it, and when."""

    rate: float
    unit: str
    by: str
    measured: str

    def age(self, now: dt.datetime | None = None) -> str:
        """How long ago, in the largest unit that fits."""
        now = now or dt.datetime.now(dt.timezone.utc)
        seconds = max(0.0, (now - dt.datetime.fromisoformat(self.measured)).total_seconds())
        for name, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
            if seconds >= length:
                count = int(seconds // length)
                return f"{count} {name}{'s' if count > 1 else ''} ago"
        return "just now"


def folder() -> Path:
    """Where ceilings are kept."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("nnbt", appauthor=False))


_METRIC = {"flops_graph": "flops"}


def _key(case: Case, dtype: str, op: str) -> str:
    metric = _METRIC.get(case.metric, case.metric)
    kind = _ANY if metric == "bandwidth" else dtype
    return "/".join([metric, case.device, kind, op, str(case.params.get("cpu_workers", 0))])


class Ceilings:
    """The ceilings of the machine with this fingerprint; `keep` reads and writes the file."""

    def __init__(self, fingerprint: str, *, keep: bool) -> None:
        self._keep = keep
        self._file = f"ceilings-{fingerprint}.json"
        self._best: dict[str, Measured] = self._read() if keep else {}

    def known(self, case: Case, precision: str) -> Measured | None:
        """The ceiling of a case that is none itself; None if none was measured.

        `precision` is how float32 was computed. For bandwidth the same operation counts, or the
        best of all where that one was not measured.
        """
        token = unit_dtype(case.dtype, precision)
        if token is None:
            return None
        op = str(case.params.get("op", _ANY))
        return self._best.get(_key(case, token, op)) or self._best.get(_key(case, token, _ANY))

    def remember(self, case: Case, rate: float, unit: str, by: str) -> None:
        """Keeps a rate if it is the best so far."""
        now = dt.datetime.now(dt.timezone.utc)
        found = Measured(rate, unit, by, now.isoformat(timespec="seconds"))
        changed = False
        for op in (str(case.params.get("op", _ANY)), _ANY):
            key = _key(case, case.dtype, op)
            known = self._best.get(key)
            if known is None or found.rate > known.rate or _old(known, now):
                self._best[key] = found
                changed = True
        if changed and self._keep:
            self._write()

    def _read(self) -> dict[str, Measured]:
        try:
            data = json.loads((folder() / self._file).read_text(encoding="utf-8"))
            if data["schema"] != SCHEMA:
                return {}
            best = {key: Measured(**row) for key, row in data["ceilings"].items()}
            for row in best.values():
                row.age()
                if not (math.isfinite(row.rate) and row.rate > 0):
                    return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
            return {}  # no file, no home, or a file that something else wrote
        return best

    def _write(self) -> None:
        rows = {key: asdict(row) for key, row in self._best.items()}
        text = json.dumps({"schema": SCHEMA, "ceilings": rows}, indent=1) + "\n"
        with contextlib.suppress(OSError, RuntimeError):
            folder().mkdir(parents=True, exist_ok=True)
            write_atomically(folder() / self._file, text)


def _old(known: Measured, now: dt.datetime) -> bool:
    return (now - dt.datetime.fromisoformat(known.measured)).days >= KEEP_DAYS
