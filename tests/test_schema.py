"""The JSON documents: docs/result.schema.json, files of every kind read back, numbers as null.

NNBT_UPDATE_GOLDEN=1 pytest tests/test_schema.py writes the schema anew.
"""

from __future__ import annotations

from golden_files import expect, pretty
from nnbt.results.files import schema
from result_schema import PATH


def test_the_schema_in_docs_is_that_of_the_types() -> None:
    expect(PATH, pretty(schema()) + "\n")
