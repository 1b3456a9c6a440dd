"""Byte-exact output of the whole command line over a fake measure.

NNBT_UPDATE_GOLDEN=1 pytest tests/test_golden.py writes the files anew; read the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_measure import FakeMeasure
from nnbt import _native
from nnbt.cli import main as cli
from nnbt.engines.mlx import flops as mlx_flops
from nnbt.peaks import stored as measured
from nnbt.pipeline import session as runner
from result_schema import validate

GOLDEN = Path(__file__).parent / "golden"
MACHINE = {
    "fingerprint": "0123456789ab",
    "cpu": "Golden CPU",
    "allowed_cpus": 2,
    "logical_cpus": 2,
    "system": "Golden OS 1",
    "device": "cpu",
    "device_name": "Golden CPU",
    "mlx": "0.0.0",
    "backend": "cpu",
    "environment": {},
}
CLOCKED = ("check_s", "answer_s", "slope_s")
COMMANDS = {
    "bandwidth": "--sizes 64 1000",
    "flops": "--metric flops --metric flops_graph --sizes 64 --runs 12",
    "dtypes": "--metric flops --sizes 65 --dtype bfloat16 --dtype complex64 --dtype int8 "
    "--dtype q4",
    "verdicts": "--sizes 64 --runs 3 --data normal --data nan",
    "rows_without_number": "--metric flops --sizes 64 --dtype int8 --data normal --data nan",
    "unchecked": "--sizes 64 --no-checks --op add",
}
MEASURES = {
    "bandwidth": FakeMeasure(readings={"minor_faults": 2.0}),
    "flops": FakeMeasure(unit_ns=123, floor_ns=1_000),
}


@pytest.fixture(autouse=True)
def _fixed_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Everything that differs between machines, MLX versions and runs."""
    monkeypatch.setattr(measured, "folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(runner, "describe_machine", lambda _, device: MACHINE | {"device": device})
    monkeypatch.setattr(runner, "now", lambda: "2000-01-01T00:00:00+00:00")
    monkeypatch.setattr(runner, "last_cache_bytes", lambda: 2**23)
    clock = SimpleNamespace(resolution_ns=42, cost_ns=20.0)
    monkeypatch.setattr(_native, "calibrate_clock", lambda: clock)
    # The last bits of a product depend on the order in which a BLAS sums.
    monkeypatch.setattr(mlx_flops, "relative_error", lambda *_: 2.0**-22)
    monkeypatch.setattr(mlx_flops, "element_errors", lambda *_: (2.0**-21, 2.0**-23))


def expect(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("NNBT_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def without_clock(document: Any) -> Any:
    """The document without what is timed beside the fake measure, and without last bits."""
    if isinstance(document, dict):
        return {key: 0 if key in CLOCKED else without_clock(x) for key, x in document.items()}
    if isinstance(document, list):
        return [without_clock(item) for item in document]
    return float(f"{document:.3g}") if isinstance(document, float) else document


@pytest.mark.parametrize("name", COMMANDS)
def test_the_output_is_byte_exact(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = COMMANDS[name].split()
    monkeypatch.setattr(_native, "measure", MEASURES.get(name, FakeMeasure()))
    monkeypatch.setattr("sys.argv", ["nnbt", *arguments])
    files = {kind: tmp_path / f"{name}.{kind}" for kind in ("csv", "json")}
    paths = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
    with pytest.raises(SystemExit) as ended:
        cli.main(["--device", "cpu", "--cpu-workers", "2", *arguments, *paths])
    shown = capsys.readouterr()
    assert shown.err == ""
    expect(f"{name}.txt", f"{shown.out}exit code {ended.value.code}\n")
    expect(f"{name}.csv", files["csv"].read_text(encoding="utf-8"))
    document = json.loads(files["json"].read_text(encoding="utf-8"))
    validate(document)
    expect(f"{name}.json", json.dumps(without_clock(document), indent=1) + "\n")
