"""docs/method.md explains every check, with the severity that it has in the table."""

import re
from pathlib import Path

import pytest

from nnbt.verdict.checks import CHECKS

METHOD = (Path(__file__).parents[1] / "docs" / "method.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([A-Z_]+)` \| (\w+) \|$", METHOD, re.MULTILINE))
TEXT = METHOD[METHOD.index("### 1.") :]


def test_the_table_lists_exactly_the_checks():
    assert {check.code: check.severity for check in CHECKS} == ROWS


@pytest.mark.parametrize("code", [check.code for check in CHECKS])
def test_each_check_is_explained(code):
    assert f"`{code}`" in TEXT
