"""Files in tests/golden: output that is the same on every machine, compared byte by byte.

NNBT_UPDATE_GOLDEN=1 writes them anew; read the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from nnbt.peaks import stored
from nnbt.pipeline import session

if TYPE_CHECKING:
    import pytest

FOLDER = Path(__file__).parent / "golden"
MACHINE = {
    "fingerprint": "0123456789ab",
    "cpu": "Golden CPU",
    "allowed_cpus": 2,
    "logical_cpus": 2,
    "system": "Golden OS 1",
    "device_name": "Golden CPU",
    "mlx": "0.0.0",
    "backend": "cpu",
    "environment": {},
}
_CLOCKED = ("answer_s", "slope_s")
_SAMPLES = 3
"""Of the samples of a row, so many stand in a file."""


def fixed_machine(monkeypatch: pytest.MonkeyPatch, native: Any, folder: Path) -> None:
    """Everything that differs between machines, MLX versions and runs."""
    monkeypatch.setattr(stored, "folder", lambda: folder)
    monkeypatch.setattr(session, "_facts", lambda _, device, __: MACHINE | {"device": device})
    monkeypatch.setattr(session, "now", lambda: "2000-01-01T00:00:00+00:00")
    monkeypatch.setattr(session, "last_cache_bytes", lambda: 2**23)
    clock = SimpleNamespace(resolution_ns=42, cost_ns=20.0)
    monkeypatch.setattr(native, "calibrate_clock", lambda: clock)


def expect(path: Path, text: str) -> None:
    """The file holds this text."""
    if os.environ.get("NNBT_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def steady(value: Any) -> Any:
    """JSON without times beside those of a fake measure, last bits, sentences (they stand in the
    text) and what is empty."""
    if isinstance(value, dict):
        return {
            key: 0 if key in _CLOCKED else steady(item[:_SAMPLES] if key == "samples_ns" else item)
            for key, item in value.items()
            if item not in (None, "", [], {}) and key != "sentence"
        }
    if isinstance(value, list):
        return [steady(item) for item in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value


def pretty(value: Any, indent: int = 0, before: int = 0) -> str:
    """JSON in lines of at most 120 characters, with what fits on one line on one line."""
    line = json.dumps(value, ensure_ascii=False)
    nested = isinstance(value, dict | list) and any(
        isinstance(item, dict | list)
        for item in (value.values() if isinstance(value, dict) else value)
    )
    if not nested or indent + before + len(line) < 120:
        return line
    pairs = value.items() if isinstance(value, dict) else [(None, item) for item in value]
    keys = ["" if key is None else f"{json.dumps(key)}: " for key, _ in pairs]
    parts = [
        " " * (indent + 1) + key + pretty(item, indent + 1, len(key) + 1)
        for key, (_, item) in zip(keys, pairs, strict=True)
    ]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n" + ",\n".join(parts) + f"\n{' ' * indent}{closed}"
