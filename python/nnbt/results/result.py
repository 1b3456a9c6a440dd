"""Case, Result and Run, and the JSON they are kept in."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from nnbt.spec.case import Case

SCHEMA = 1
"""Moves only when a reader of older files would misread newer ones."""

Status = Literal["OK", "UNSUPPORTED", "SKIPPED", "ERROR"]
VerdictName = Literal["VALID", "SUSPECT", "INVALID"]


@dataclass(frozen=True)
class Reason:
    """Why a verdict is not VALID, or what a reader must know: a code and one sentence."""

    code: str
    sentence: str
    severity: Literal["note", "suspect", "invalid"]


@dataclass(frozen=True)
class Result:
    """One row. A row without a number has a status other than OK and a sentence in `reason`.

    `rate` is in `unit` (B/s, FLOP/s, IOP/s or QOP/s) from the median; `best_rate` from the
    fastest run. `sizes` holds bytes and counts of one run (work_bytes or work_ops, matrix_bytes,
    ...). `slope_rate` is free of the constant cost `overhead_us` of an evaluation.
    """

    case: Case
    status: Status = "OK"
    reason: str = ""
    verdict: VerdictName | None = None
    reasons: tuple[Reason, ...] = ()
    median_s: float | None = None
    interval_s: tuple[float, float] | None = None
    coverage: float | None = None
    best_s: float | None = None
    rate: float | None = None
    best_rate: float | None = None
    unit: str = ""
    slope_rate: float | None = None
    overhead_us: float | None = None
    effective_bits: float | None = None
    precision: str = ""
    samples_ns: tuple[int, ...] = ()
    stop: str = ""
    warmup_runs: int = 0
    first_run_s: float | None = None
    window_s: float | None = None
    check_s: float | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    readings: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """Timed runs behind the number."""
        return len(self.samples_ns)

    def as_dict(self) -> dict[str, Any]:
        """The form of the JSON file: reasons become codes, sentences stand beside them."""
        return {
            "case": self.case.as_dict(),
            "status": self.status,
            "reason": self.reason,
            "verdict": self.verdict,
            "reasons": [reason.code for reason in self.reasons],
            "sentences": {reason.code: reason.sentence for reason in self.reasons},
            "severities": {reason.code: reason.severity for reason in self.reasons},
            "median_s": self.median_s,
            "interval_s": list(self.interval_s) if self.interval_s else None,
            "interval_coverage": self.coverage,
            "best_s": self.best_s,
            "rate": self.rate,
            "best_rate": self.best_rate,
            "unit": self.unit,
            "slope_rate": self.slope_rate,
            "overhead_us": self.overhead_us,
            "effective_bits": self.effective_bits,
            "precision": self.precision,
            "runs": self.runs,
            "stop": self.stop,
            "warmup_runs": self.warmup_runs,
            "first_run_s": self.first_run_s,
            "window_s": self.window_s,
            "check_s": self.check_s,
            "sizes": dict(self.sizes),
            "notes": list(self.notes),
            "readings": dict(self.readings),
            "details": dict(self.details),
            "samples_ns": list(self.samples_ns),
        }


@dataclass
class Run:
    """Everything one call measured, in order; grows case by case."""

    machine: Mapping[str, Any]
    argv: list[str]
    started: str
    results: list[Result] = field(default_factory=list)
    finished: bool = False

    @property
    def failed(self) -> bool:
        """Whether a row is INVALID or ERROR: the command then ends with exit code 1."""
        return any(row.verdict == "INVALID" or row.status == "ERROR" for row in self.results)

    def as_dict(self) -> dict[str, Any]:
        """The JSON document."""
        return {
            "schema": SCHEMA,
            "machine": dict(self.machine),
            "argv": self.argv,
            "started": self.started,
            "finished": self.finished,
            "results": [row.as_dict() for row in self.results],
        }

    def to_json(self, more: Mapping[str, Any] | None = None) -> str:
        """The JSON document as text, with `more` keys; NaN and infinities become null."""
        document = {**self.as_dict(), **(more or {})}
        return json.dumps(_finite(document), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


_OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
_READER_S = 5.0
"""Seconds that a named pipe is given to find a reader."""


def is_stream(path: Path) -> bool:
    """Whether the path names a pipe, a terminal or the like: written once, nothing to rename."""
    return str(path).startswith(_OPEN_FILES) or (path.exists() and not path.is_file())


def own_stream(path: Path) -> TextIO | None:
    """stdout or stderr of this process if the path is a name of theirs: opened anew, it would be
    written over what is there already."""
    named = {"stdout": 1, "stderr": 2, "1": 1, "2": 2}.get(path.name)
    if named is None or not str(path).startswith(_OPEN_FILES):
        return None
    return sys.stdout if named == 1 else sys.stderr


def write_beside(path: Path, text: str) -> None:
    """Writes `text` to a temporary sibling and renames it, so that no reader sees half a file.

    Keeps the mode of a file that is replaced. Raises OSError.
    """
    stream = own_stream(path)
    if stream is not None:
        stream.write(text)
        stream.flush()
        return
    if is_stream(path):
        with os.fdopen(_open_stream(path), "w") as pipe:
            pipe.write(text)
        return
    target = _target(path)
    # Named before it is made: a signal in between must not leave it behind.
    temporary = _sibling(target)
    try:
        with temporary.open("x", newline="") as file:
            file.write(text)
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sibling(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


def _target(path: Path) -> Path:
    """The file behind links: it is replaced, and the links stay."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _open_stream(path: Path) -> int:
    """A descriptor to write to. Raises OSError (ENXIO) for a pipe that nobody reads."""
    end = time.monotonic() + _READER_S
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_TRUNC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise OSError(error.errno, "nobody reads it") from error
            time.sleep(0.05)
        else:
            os.set_blocking(handle, True)
            return handle


def check_writable(path: Path) -> str | None:
    """None if a file can be written there, else a sentence; leaves no file behind."""
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # a name that is too long, a file as a folder, links in a circle
        return f"{path} can't be written: {error.strerror}; choose another name."
    if path.is_dir():
        return f"{path} is a folder: name a file in it."
    if own_stream(path) is not None:
        return None
    target = _target(path)
    if not target.parent.is_dir():
        return f"{path} can't be written: there is no folder {target.parent}; make it first."
    if is_stream(path):
        return None if os.access(path, os.W_OK) else f"{path} can't be written."
    temporary = _sibling(target)
    try:
        temporary.open("x").close()
    except OSError as error:
        return f"{path} can't be written: {error.strerror}; choose another folder."
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return None
