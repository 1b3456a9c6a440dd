"""docs/result.schema.json, against which every JSON document of the tests is validated."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from nnbt.results.files import json_text, load

if TYPE_CHECKING:
    from nnbt.results.result import Result, Run

PATH = Path(__file__).parents[1] / "docs/result.schema.json"


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads(PATH.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def validate(document: Any) -> None:
    """Raises jsonschema.ValidationError for a document that is none of nnbt's."""
    _validator().validate(document)


def document_of(run: Run) -> dict[str, Any]:
    """The valid JSON document of a run, without NaN and infinities; reading it gives it again."""
    text = json_text(run)
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    validate(found)
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        again = load(file.name)
    assert json_text(again) == text
    assert isinstance(found, dict)
    return found


def rows_of(path: Path | str) -> list[Result]:
    """The results in a file of --json, which is valid."""
    validate(json.loads(Path(path).read_text(encoding="utf-8")))
    return load(path).results
