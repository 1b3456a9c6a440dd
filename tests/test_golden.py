"""Byte-exact output of the whole command line over a fake measure, a row of each kind.

NNBT_UPDATE_GOLDEN=1 pytest tests/test_golden.py writes the files anew; read the difference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from fake_measure import FakeMeasure
from golden_files import FOLDER, expect, fixed_machine, pretty, steady
from nnbt import _native
from nnbt.cli import main as cli
from nnbt.engines.mlx import flops as mlx_flops
from result_schema import validate

if TYPE_CHECKING:
    from pathlib import Path


class Command(NamedTuple):
    """`rows` are those whose JSON is kept."""

    arguments: str
    rows: tuple[int, ...]
    measure: FakeMeasure


COMMANDS = (
    # Valid, with a note and without.
    Command("--sizes 64 1000", (0,), FakeMeasure(readings={"minor_faults": 2.0})),
    # Suspect for several reasons.
    Command(
        "--metric flops --metric flops_graph --sizes 64 --runs 12",
        (0,),
        FakeMeasure(unit_ns=123, floor_ns=1_000),
    ),
    # Every family of types: an integer and a quantised one.
    Command(
        "--metric flops --sizes 65 --dtype bfloat16 --dtype complex64 --dtype int8 --dtype q4",
        (2, 3),
        FakeMeasure(),
    ),
    # Invalid.
    Command("--sizes 64 --runs 3 --data normal --data nan", (1,), FakeMeasure()),
    # Without a number.
    Command("--metric flops --sizes 64 --dtype int8 --data normal --data nan", (1,), FakeMeasure()),
    Command("--sizes 64 --no-checks --op add", (0,), FakeMeasure()),
)


def test_the_output_is_byte_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed_machine(monkeypatch, _native, tmp_path)
    # The last bits of a product depend on the order in which a BLAS sums.
    monkeypatch.setattr(mlx_flops, "relative_error", lambda *_: 2.0**-22)
    monkeypatch.setattr(mlx_flops, "element_errors", lambda *_: (2.0**-21, 2.0**-23))
    texts, tables, rows = [], [], []
    for arguments, kept, measure in COMMANDS:
        monkeypatch.setattr(_native, "measure", measure)
        monkeypatch.setattr("sys.argv", ["nnbt", *arguments.split()])
        files = {kind: tmp_path / f"rows.{kind}" for kind in ("csv", "json")}
        paths = [part for kind, path in files.items() for part in (f"--{kind}", str(path))]
        with pytest.raises(SystemExit) as ended:
            cli.main(["--device", "cpu", "--cpu-workers", "2", *arguments.split(), *paths])
        shown = capsys.readouterr()
        assert shown.err == ""
        texts.append(f"$ nnbt {arguments}\n{shown.out}exit code {ended.value.code}\n")
        header, table = files["csv"].read_text(encoding="utf-8").split("\n", 1)
        tables.append(table)
        document = json.loads(files["json"].read_text(encoding="utf-8"))
        validate(document)
        rows += [document["results"][index] for index in kept]
    expect(FOLDER / "rows.txt", "\n".join(texts))
    expect(FOLDER / "rows.csv", "\n".join([header, "".join(tables)]))
    expect(FOLDER / "rows.json", pretty(steady({**document, "results": rows})) + "\n")
