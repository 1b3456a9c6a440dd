"""docs/result.schema.json, against which every JSON document of the tests is validated."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

PATH = Path(__file__).parents[1] / "docs/result.schema.json"


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads(PATH.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def validate(document: Any) -> None:
    """Raises jsonschema.ValidationError for a document that is none of nnbt's."""
    _validator().validate(document)
