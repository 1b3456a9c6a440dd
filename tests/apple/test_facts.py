"""The conformance check finds planted faults (needs no compiler and no network)."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

FACTS_FOLDER = Path(__file__).resolve().parent / "facts"
FACTS = json.loads((FACTS_FOLDER / "apple_api.json").read_text())["facts"]


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(FACTS_FOLDER))
    try:
        yield importlib.import_module("declarations"), importlib.import_module("check")
    finally:
        sys.path.remove(str(FACTS_FOLDER))


@pytest.fixture
def problems(modules):
    _, check = modules
    return lambda declaration: check.problems_of(declaration, FACTS.get(declaration.where))


@pytest.fixture
def cast(modules):
    declarations, _ = modules
    return declarations.Declaration(
        "method",
        "MPSGraph",
        "-castTensor:toType:name:",
        result="object",
        arguments=("object", "enum", "object"),
    )


def test_a_right_declaration_passes(problems, cast):
    assert problems(cast) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "-castTensor:toTypes:name:"}, "not in the SDK"),
        ({"owner": "MPSGraphTensor"}, "not in the SDK"),
        ({"name": "+castTensor:toType:name:"}, "not in the SDK"),
        ({"arguments": ("object", "enum")}, "the SDK has"),
        ({"arguments": ("object", "object", "object")}, "object here, int64 in the SDK"),
        ({"arguments": ("block", "enum", "object")}, "block here"),
        ({"result": "void"}, "void here"),
    ],
)
def test_a_wrong_method_is_found(problems, cast, change, words):
    assert words in problems(replace(cast, **change))[0]


def test_a_wrong_value_superclass_or_release_is_found(problems, modules):
    declarations, check = modules
    constant = declarations.Declaration(
        "constant", "MPSDataType", "MPSDataTypeFloat16", value=0x10000010
    )
    assert problems(constant) == []
    assert problems(replace(constant, value=0x10000020)) == ["MPSDataTypeFloat16: is 268435472"]
    tensor = declarations.Declaration(
        "class", "MPSGraphTensor", "MPSGraphTensor", superclass="MPSGraphObject"
    )
    assert problems(tensor) == []
    assert "its superclass is" in problems(replace(tensor, superclass="NSObject"))[0]
    fact = {"type": "void ()", "ios": "26.0"}
    new = declarations.Declaration("method", "A", "-b", result="void")
    assert check.problems_of(new, fact) == ["-[A b]: newer than iOS 18 (iOS 26.0)"]


def test_the_allow_list_names_a_source_for_each_entry(modules):
    _, check = modules
    assert check.private_selectors() >= {
        "setPreferredDevice:",
        "evaluateWithModel:options:request:qos:error:",
        "ANEDevice",
    }
    api = check.PRIVATE_API
    entries = [*api["classes"].values(), *api["names"].values()]
    entries += [fact["sources"] for fact in api["selectors"].values()]
    assert all(source for sources in entries for source in (sources or [""]))


def test_a_private_declaration_that_differs_from_its_source_is_found(modules):
    declarations, check = modules
    declared = []
    for where, fact in check.PRIVATE_API["selectors"].items():
        owner, name = where[2:-1].split()
        result, *arguments = (check.KINDS[k] for k in re.findall(r"\^?.", fact["type"]))
        method = declarations.Declaration(
            "method", owner, where[0] + name, result=result, arguments=tuple(arguments)
        )
        assert method.where == where
        declared.append(method)
    assert check.private_problems(declared) == []
    assert "not in private_api.h" in check.private_problems(declared[1:])[0]
    changed = replace(declared[0], result="double")
    assert "its types aren't" in check.private_problems([changed, *declared[1:]])[0]
    extra = replace(declared[0], name="-secret")
    assert "declared without a source" in check.private_problems([*declared, extra])[0]


def test_an_undeclared_selector_is_found(modules, tmp_path):
    _, check = modules
    names = b"count\0noSuchThing:\0setPreferredDevice:\0"
    header = bytearray(32 + 72 + 80)
    header[16:20] = (1).to_bytes(4, "little")  # one load command
    header[32:40] = (0x19).to_bytes(4, "little") + (152).to_bytes(4, "little")
    header[32 + 64 : 32 + 68] = (1).to_bytes(4, "little")  # one section
    section = 32 + 72
    header[section : section + 16] = b"__objc_methname\0"
    header[section + 40 : section + 48] = len(names).to_bytes(8, "little")
    header[section + 48 : section + 52] = len(header).to_bytes(4, "little")
    path = tmp_path / "binary"
    texts = b"\0_ANESecret\0_ANEClient\0kANEFModelType\0"
    path.write_bytes(bytes(header) + names + b"_OBJC_CLASS_$__ANEClient" + texts)
    found = check.check_binary(path, {"count"})
    assert found == [
        "binary: noSuchThing: is neither public nor declared private",
        "binary: names _ANESecret",
        "binary: links _OBJC_CLASS_$__",
    ]
    path.write_bytes(bytes(32))
    assert check.check_binary(path, set()) == ["binary: no selectors found"]
