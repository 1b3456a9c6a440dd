"""Run <-> JSON: what --json writes, and nnbt.load reads."""

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nnbt.results import schema1
from nnbt.results.result import SCHEMA, Run
from nnbt.spec.errors import Refusal

_WRITE_ONE = "use a file that nnbt --json wrote"


def json_text(run: Run, ladder: Mapping[str, Any] | None = None) -> str:
    """The JSON document of a run, with its ladder if there is one; NaN and infinity are null."""
    document = replace(run, ladder=ladder) if ladder is not None else run
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def load(path: str | PathLike[str]) -> Run:
    """The run in a file that --json wrote, of this or an earlier schema.

    Raises Refusal for a file that cannot be read, is truncated, is not from nnbt, or has a newer
    schema.
    """
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Refusal(f"{str(path)!r} cannot be read ({why})", _WRITE_ONE) from error
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refusal(f"{path} is not complete JSON ({error})", _WRITE_ONE) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if type(schema) is not int or "results" not in document:
        raise Refusal(f"{path} contains no nnbt results", _WRITE_ONE)
    if schema > SCHEMA:
        raise Refusal(
            f"{path} has schema {schema}, and this version reads up to {SCHEMA}", "update nnbt"
        )
    try:
        current = schema1.upgraded(document) if schema < SCHEMA else document
        return _filled(msgspec.convert(current, Run, str_keys=True))
    except (msgspec.ValidationError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise Refusal(f"{path} contains no nnbt results ({error})", _WRITE_ONE) from error


_T = TypeVar("_T")


def _filled(value: _T) -> _T:
    """With each field in the object itself: msgspec leaves defaults that a document lacks to the
    class, and would not write them again."""
    if is_dataclass(value):
        for field in fields(value):
            object.__setattr__(value, field.name, _filled(getattr(value, field.name)))
    elif isinstance(value, list | tuple):
        for item in value:
            _filled(item)
    return value


def schema() -> dict[str, Any]:
    """The JSON Schema of what json_text writes: every field of Run and of what it holds."""
    made = msgspec.json.schema(Run)
    for definition in made["$defs"].values():
        definition["description"] = inspect.cleandoc(definition.get("description", ""))
        fields = definition["properties"]
        definition |= {"required": list(fields), "additionalProperties": False}
        for field in fields.values():
            field.pop("default", None)  # every field is written
    made["$defs"]["Run"]["properties"]["schema"] = {"const": SCHEMA}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Results of nnbt, schema {SCHEMA}",
        **made,
    }
