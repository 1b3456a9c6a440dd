"""nnbt info: what is here, and every table in words."""

import dataclasses
import re

import pytest

from nnbt._native import Unsupported
from nnbt.cli import info
from nnbt.ladder.causes import CAUSES
from nnbt.ladder.rungs import RUNGS
from nnbt.machine.devices import DEVICES
from nnbt.pipeline.matrix import ENGINES, METRICS
from nnbt.results.columns import COLUMNS, CSV_COLUMNS
from nnbt.spec.dtypes import DTYPES
from nnbt.spec.errors import Refusal
from nnbt.spec.options import DATA
from nnbt.verdict.checks import CHECKS

NAMES = {
    "formulas": list(METRICS),
    "checks": [check.code for check in CHECKS],
    "columns": [
        *(column.key for column in CSV_COLUMNS),
        *(f"  {column.header}  " for column in COLUMNS if column.rank is not None),
    ],
    "dtypes": list(DTYPES),
    "devices": list(DEVICES),
    "data": list(DATA),
    "engines": list(ENGINES),
    "ladder": [*(kind.label for kind in RUNGS.values()), *(cause.code for cause in CAUSES)],
}


def test_the_overview_names_machine_libraries_and_devices() -> None:
    text = info.overview()
    for word in ("CPU", "memory", "mlx", "clock", *DEVICES):
        assert re.search(rf"^  {word}\b|^{word}\b", text, re.MULTILINE), word


def test_a_device_that_is_missing_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal("No GPU at all", "use --device cpu")
    gone = dataclasses.replace(DEVICES["gpu"], missing=lambda: refusal)
    monkeypatch.setitem(DEVICES, "gpu", gone)
    text = info.overview()
    assert "No GPU at all." in text
    assert "use --device" not in text


def test_the_overview_says_what_has_not_been_proven() -> None:
    assert "nothing has run on Apple hardware yet" in " ".join(info.overview().split())


@pytest.mark.parametrize("topic", info.TOPICS)
def test_every_topic_prints_all_rows_of_its_table(topic: str) -> None:
    text = info.explain(topic)
    assert max(map(len, text.splitlines())) <= 100
    for name in NAMES.get(topic, []):
        assert name in text
    assert text in info.explain("all")


def test_checks_come_with_their_thresholds() -> None:
    text = " ".join(info.explain("checks").split())
    for check in CHECKS:
        assert " ".join(check.threshold.split()) in text


def test_an_unknown_topic_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Unsupported) as refused:
        info.explain("weather")
    assert all(topic in str(refused.value) for topic in info.TOPICS)
