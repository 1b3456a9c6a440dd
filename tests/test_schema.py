"""The JSON document: docs/result.schema.json, files of every kind read back, NaN as null.

NNBT_UPDATE_GOLDEN=1 pytest tests/test_schema.py writes the schema anew.
"""

from __future__ import annotations

import contextlib
import json
import math
import typing
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import nnbt
from fake_measure import FakeMeasure
from golden_files import expect, pretty
from nnbt.results import schema1
from nnbt.results.columns import csv_text
from nnbt.results.files import json_text, schema
from nnbt.results.result import SCHEMA, Reason, Result, Run
from nnbt.spec.case import Case
from nnbt.timing.slope import Slope
from nnbt.verdict.checks import CHECKS
from result_schema import PATH, document_of

OLD = Path(__file__).parent / "data/schema1.json"
"""Rows of nnbt 0.1, their samples and registers cut: one of a sweep over threads that was timed
twice, one without a number, one of NaN, and one of conv with counters."""
CASE = Case("flops", "cpu", "mlx", "float32", 64, {"data": "normal", "cpu_workers": 2})
ROW = Result(CASE, verdict="VALID", median_s=1e-3, rate=1e9, unit="FLOP/s", samples_ns=(10**6,))


def saved(run: Run, folder: Path) -> Run:
    """The run once it was written and read."""
    path = folder / "run.json"
    path.write_text(json_text(run), encoding="utf-8")
    return nnbt.load(path)


def test_the_schema_in_docs_is_that_of_the_types() -> None:
    expect(PATH, pretty(schema()) + "\n")


def test_everything_that_a_run_holds_is_in_the_schema() -> None:
    made, seen = schema()["$defs"], set()

    def look(kind: Any) -> None:
        for part in typing.get_args(kind):
            look(part)
        if is_dataclass(kind) and kind not in seen:
            seen.add(kind)
            assert made[kind.__name__]["required"] == [field.name for field in fields(kind)]
            for part in typing.get_type_hints(kind).values():
                look(part)

    look(Run)
    assert {kind.__name__ for kind in seen} == set(made)


@pytest.mark.parametrize(
    "change",
    [{"schema": SCHEMA + 1}, {"results": [{"case": CASE.as_dict()}]}, {"started": 5}, {"more": 1}],
    ids=str,
)
def test_the_schema_refuses_other_documents(change: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema())
    document = document_of(Run({}, [], "", [ROW]))
    assert validator.is_valid(document)
    assert not validator.is_valid({**document, **change})
    del document["started"]
    assert not validator.is_valid(document)


# Files of this schema


def test_a_run_is_the_same_once_it_was_saved(tmp_path: Path) -> None:
    reasons = (Reason("DRIFT", "slower", "suspect"), Reason("CACHE_RESIDENT", "small", "note"))
    slope = Slope({1: 1e-3, 2: 2e-3}, 1e-3, 0.0, 0.0, 2.0)
    row = replace(ROW, verdict="SUSPECT", reasons=reasons, slope=slope, interval_s=(1e-4, 1e-2))
    run = Run({"cpu": None, "caches": {"1": 2**15}}, ["--sizes", "64"], "now", [row, ROW])
    run.finished = True
    assert saved(run, tmp_path) == run
    ladder = {"rungs": [{"rate": None}]}
    path = tmp_path / "ladder.json"
    path.write_text(json_text(run, ladder), encoding="utf-8")
    assert nnbt.load(str(path)) == replace(run, ladder=ladder)


@pytest.mark.parametrize(
    "asked",
    [
        {"metric": ["bandwidth", "flops", "flops_graph"], "data": ["normal", "zeros"]},
        {"metric": ["bandwidth", "flops"], "data": "nan"},
        {"metric": "flops", "dtype": ["q4", "int8"], "data": ["normal", "nan"]},
        {"engine": "native", "thread_sweep": True, "op": "copy"},
        {"metric": "conv", "params": {"channels": 4, "layers": 2}, "checks": False},
        {"metric": "flops", "engine": "library", "runs": 3},
    ],
    ids=str,
)
def test_measured_runs_are_the_same_once_they_were_saved(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    measure = FakeMeasure(readings={"minor_faults": 2.0, "power": math.nan})
    run = nnbt.run(device="cpu", sizes=[16], cpu_workers=2, measure=measure, **asked)
    assert {row.status for row in run.results} <= {"OK", "UNSUPPORTED"}
    document_of(run)
    again = saved(run, tmp_path)
    assert csv_text(again.results) == csv_text(run.results)
    assert [row.verdict for row in again.results] == [row.verdict for row in run.results]


def test_nan_and_infinity_are_null(tmp_path: Path) -> None:
    row = replace(ROW, effective_bits=math.inf, rate=math.nan, readings={"power": -math.inf})
    (found,) = document_of(Run({"deep": [{"x": -math.inf}]}, [], "", [row]))["results"]
    assert (found["effective_bits"], found["rate"]) == (None, None)
    again = saved(Run({}, [], "", [row]), tmp_path).results[0]
    assert again == replace(row, effective_bits=None, rate=None, readings={"power": None})


# Files of schema 1


def test_rows_of_schema_1_are_read() -> None:
    run = nnbt.load(OLD)
    assert (run.schema, run.finished, run.argv) == (SCHEMA, True, ["--sizes", "64"])
    assert [(row.status, row.verdict) for row in run.results] == [
        ("OK", "SUSPECT"), ("UNSUPPORTED", None), ("OK", "INVALID"), ("OK", "VALID"),
    ]  # fmt: skip
    document_of(run)
    old = json.loads(OLD.read_text(encoding="utf-8"))["results"]
    for row, before in zip(run.results, old, strict=True):
        assert row.case.as_dict() == before["case"]
        assert (row.rate, row.runs, row.unit) == (before["rate"], before["runs"], before["unit"])
        assert [reason.sentence for reason in row.reasons] == list(before["sentences"].values())
        assert [reason.severity for reason in row.reasons] == list(before["severities"].values())


def test_details_of_schema_1_get_their_types() -> None:
    swept, without, nan, conv = nnbt.load(OLD).results
    assert (swept.details.fits_in, swept.slope_unit) == ("L1", "run")
    assert swept.slope is not None
    assert sorted(swept.slope.seconds) == [1, 2, 4]
    assert swept.summary is not None
    assert swept.summary.median_s == swept.median_s
    assert swept.other_window is not None
    assert (swept.other_window.which, swept.other_window.scatter) == ("second", None)
    assert swept.sweep is not None
    assert swept.sweep.knee_threads == 1
    assert swept.launch_overhead is not None
    assert swept.launch_overhead.floor_s == pytest.approx(4.3e-6, rel=0.01)
    assert (without.answer, without.summary, without.samples_ns) == (None, None, ())
    assert nan.answer is not None
    assert (nan.answer.error, nan.answer.typical) == (None, None)
    assert nan.ratio_to_random == pytest.approx(0.913, rel=0.01)
    assert conv.details.placement is not None
    assert conv.details.placement.verdict == "proven"
    assert conv.published is not None
    assert conv.published.model == "Apple M4 Pro"
    counters = conv.details.counters
    assert counters is not None
    assert (counters.status, counters.hw_s) == ("ok", 3e-8)
    assert counters.decoded is not None
    assert counters.decoded.utilisation == 0.498
    assert [register.delta for register in counters.decoded.registers] == [0, 1300, 300]
    assert counters.raw["windows"][0]["evaluations"] == 10


def test_codes_of_schema_1_are_those_of_today() -> None:
    today = {check.code for check in CHECKS}
    assert set(schema1._CODES.values()) <= today
    assert not set(schema1._CODES) & today
    found = {reason.code for row in nnbt.load(OLD).results for reason in row.reasons}
    assert found <= today


# Files of something else


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "none.json"),
        (b"", "JSON"),
        (b"no JSON", "JSON"),
        (b"\x7fELF\x00\xff", "JSON"),
        (b"[" * 100_000, "JSON"),
        (json_text(Run({}, [], "", [ROW])).encode()[:-30], "JSON"),
        (b"[]", "no nnbt results"),
        (b"5", "no nnbt results"),
        (b'{"schema": 2}', "no nnbt results"),
        (b'{"schema": "2", "results": []}', "no nnbt results"),
        (b'{"schema": true, "results": []}', "no nnbt results"),
        (b'{"schema": -1, "results": []}', "no nnbt results"),
        (b'{"schema": 2, "results": []}', "no nnbt results"),
        (b'{"schema": 1, "results": [5]}', "no nnbt results"),
        (b'{"schema": 1, "results": [{"case": {}}]}', "no nnbt results"),
        (
            b'{"schema": 1, "results": 5, "machine": {}, "argv": [], "started": ""}',
            "no nnbt results",
        ),
        (
            b'{"schema": 2, "machine": {}, "argv": [], "started": "", "results": [{}]}',
            "no nnbt results",
        ),
        (json.dumps({"schema": SCHEMA + 1, "results": []}).encode(), str(SCHEMA + 1)),
        (json.dumps({"schema": 10**30, "results": []}).encode(), "schema"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_file_of_something_else_is_one_sentence(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "none.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(nnbt.Unsupported) as refused:
        nnbt.load(path)
    sentence = str(refused.value)
    assert words in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 400


def test_a_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(nnbt.Unsupported, match="directory"):
        nnbt.load(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "with\0null"])
def test_a_name_that_no_file_can_have_is_one_sentence(name: str) -> None:
    with pytest.raises(nnbt.Unsupported):
        nnbt.load(name)


@pytest.mark.parametrize("cut", range(0, 5000, 97))
def test_a_file_that_was_cut_anywhere_is_one_sentence(cut: int, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_bytes(OLD.read_bytes()[:cut])
    with pytest.raises(nnbt.Unsupported):
        nnbt.load(tmp_path / "cut.json")


def _spoilt(value: Any, path: list[Any], bad: Any) -> Any:
    """The document with another value at one place."""
    if not path:
        return bad
    changed = value.copy()
    changed[path[0]] = _spoilt(value[path[0]], path[1:], bad)
    return changed


def _places(value: Any) -> list[list[Any]]:
    """The way to each value of a document, of lists to the first one only."""
    pairs = value.items() if isinstance(value, dict) else [*enumerate(value)][:1]
    inside = [[key, *rest] for key, item in pairs for rest in _places_of(item)]
    return [[], *inside]


def _places_of(item: Any) -> list[list[Any]]:
    return _places(item) if isinstance(item, dict | list) else [[]]


@pytest.mark.parametrize("bad", [None, 5, "words", [], {}, -1.5, True])
def test_another_value_anywhere_is_read_or_one_sentence(bad: Any, tmp_path: Path) -> None:
    document = json.loads(OLD.read_text(encoding="utf-8"))
    path = tmp_path / "spoilt.json"
    for index, row in enumerate(document["results"]):
        for place in _places(row):
            spoilt = _spoilt(document, ["results", index, *place], bad)
            path.write_text(json.dumps(spoilt), encoding="utf-8")
            with contextlib.suppress(nnbt.Unsupported):
                nnbt.load(path)
