"""The JSON documents: docs/result.schema.json, files of every kind read back, numbers as null.

NNBT_UPDATE_GOLDEN=1 pytest tests/test_schema.py writes the schema anew.
"""

from __future__ import annotations

import json
import os
from typing import Any

from nnbt.results.files import schema
from result_schema import PATH


def pretty(value: Any, indent: int = 0, before: int = 0) -> str:
    """JSON in lines of at most 120 characters, with what fits on one line on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, dict | list) or indent + before + len(line) < 120:
        return line
    pairs = value.items() if isinstance(value, dict) else [(None, item) for item in value]
    keys = ["" if key is None else f"{json.dumps(key)}: " for key, _ in pairs]
    parts = [
        " " * (indent + 1) + key + pretty(item, indent + 1, len(key) + 1)
        for key, (_, item) in zip(keys, pairs, strict=True)
    ]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return ",\n".join([opened + "\n" + parts[0], *parts[1:]]) + f"\n{' ' * indent}{closed}"


def test_the_schema_in_docs_is_that_of_the_types() -> None:
    text = pretty(schema()) + "\n"
    if os.environ.get("NNBT_UPDATE_GOLDEN"):
        PATH.write_text(text, encoding="utf-8")
    assert text == PATH.read_text(encoding="utf-8")
