"""The check of private C functions finds planted faults (needs no compiler)."""

from __future__ import annotations

import copy
import importlib
import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
OBJC = HERE.parents[1] / "objc"
FACTS = json.loads((HERE / "facts/private_functions.json").read_text())
HEADER = (OBJC / "private_functions.h").read_text()
SOURCES = "".join(path.read_text() for path in sorted(OBJC.rglob("*.mm")))


@pytest.fixture(scope="module")
def check():
    sys.path.insert(0, str(HERE / "facts"))
    try:
        yield importlib.import_module("check_functions")
    finally:
        sys.path.remove(str(HERE / "facts"))


def test_the_header_and_the_sources_agree_with_the_facts(check):
    assert check.header_problems(HEADER, FACTS) == []
    assert check.source_problems(SOURCES, FACTS) == []
    assert set(check.declared(HEADER)) == set(FACTS["functions"])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("(*IOReportChannelGetFormat)", "(*IOReportChannelGetKind)", "declared without a fact"),
        ("(*IOReportChannelGetFormat)", "(*IOReportChannelGetKind)", "never declared"),
        ("typedef int64_t (*IOReportSimple", "typedef int (*IOReportSimple", "type is int ("),
        ("NSString* _Nullable,\n", "uint64_t,\n", "type is object (object, uint64"),
        ("id _Nonnull, int32_t* _Nullable", "id _Nonnull, int", "type is int64 (object, int) here"),
        ("__attribute__((ns_returns_retained))", "", "owned is False here"),
        ("typedef int (*IO", "typedef struct io io_t;\ntypedef int (*IO", "couldn't be read"),
    ],
)
def test_a_wrong_declaration_is_found(check, old, new, words):
    assert old in HEADER
    found = check.header_problems(HEADER.replace(old, new), FACTS)
    assert any(words in problem for problem in found), found


def test_names_without_a_fact_and_facts_without_a_use_are_found(check):
    added = SOURCES + 'dlsym(x, "IOReportMergeChannels"); y[@"RawElementsToo"];'
    assert check.source_problems(added, FACTS) == [
        "IOReportMergeChannels: looked up without a fact"
    ]
    removed = SOURCES.replace('"IOReportCreateSamples"', '"other"').replace("libIOReport.dy", "")
    assert check.source_problems(removed, FACTS) == [
        "IOReportCreateSamples: a fact that nothing uses",
        "/usr/lib/libIOReport.dylib: never opened",
    ]
    facts = copy.deepcopy(FACTS)
    facts["functions"]["IOReportCreateSamples"]["source"] = "general knowledge"
    assert check.source_problems(SOURCES, facts) == ["IOReportCreateSamples: has no source"]


def test_a_binary_may_not_name_or_link_anything_else(check):
    right = b"\0IOReportCreateSamples\0RawElements\0IOReport is text\0"
    assert check.binary_problems("a", right, FACTS) == []
    wrong = right + b"IOReportMergeChannels\0_IOReportCreateSamples\0"
    assert check.binary_problems("a", wrong, FACTS) == [
        "a: names IOReportMergeChannels without a fact",
        "a: links _IOReportCreateSamples",
    ]
