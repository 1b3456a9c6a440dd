"""Property lists of saved packages, read with Foundation; the fixtures are written by plistlib."""

from __future__ import annotations

import datetime
import json
import os
import plistlib
import subprocess
from itertools import count
from pathlib import Path

import numpy as np
import pytest

BUILD = Path(os.environ["NNBT_DOUBLES_BUILD"])
FORMATS = {"xml": plistlib.FMT_XML, "binary": plistlib.FMT_BINARY}
FLAGS = ["mps.fullyPlacedOnANE", "mps.noGPUActivity", {"mps.ane.calleeName": "main_ANE_region_0_0"}]
PLACED = {
    "fully_placed_on_ane": True,
    "no_gpu_activity": True,
    "ane_regions": ["main_ANE_region_0_0"],
}


def driver(what, paths):
    """The driver's answer for each path."""
    done = subprocess.run(
        [BUILD / "nnbt_plist_driver", what],
        input="".join(f"{path}\n" for path in paths),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def read(tmp_path):
    """What the driver reads from bytes."""
    numbers = count()

    def read_(what, *contents):
        paths = [tmp_path / f"{next(numbers)}.plist" for _ in contents]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        answers = driver(what, paths)
        assert len(answers) == len(contents)
        return answers

    return read_


def manifest(flags, **version):
    module = {"Entry Function Attributes": {"main": flags}}
    return {"Package Version": {"7.0.63": {"Optimized Modules": [module], **version}}}


@pytest.fixture(params=FORMATS)
def dump(request):
    return lambda value: plistlib.dumps(value, fmt=FORMATS[request.param])


def test_manifests(read, dump):
    without = {"fully_placed_on_ane": False, "no_gpu_activity": False, "ane_regions": []}
    unknown = {"fully_placed_on_ane": None, "no_gpu_activity": None, "ane_regions": []}
    assert read(
        "manifest",
        dump(manifest(FLAGS, **{"GPU adapter present": False})),
        dump(manifest(["other"])),
        dump({"Package Version": {"1": {"Original": 0}}}),
    ) == [{"read": PLACED}, {"read": without}, {"read": unknown}]


def test_values_of_all_types(read, dump):
    value = {
        "text": "a<&>b",
        "wide": "\u20ac and \U0001f600, longer than fifteen characters",
        "empty": "",
        "list": ["x", [], {}],
        "numbers": [0, 255, -2, 2**40, 2**63 - 1, 2.5, True],
        "date": datetime.datetime(2026, 1, 2, 3, 4, 5),
        "data": b"xyz",
    }
    (answer,) = read("list", dump(value))
    # Only text and structure are read.
    assert answer["read"] == value | {"numbers": [None] * 7, "date": None, "data": None}


def test_entities_and_comments(read):
    (answer,) = read(
        "list",
        b"<?xml version='1.0'?><!-- c --><plist version='1.0'><dict><key>a&amp;b</key>"
        b"<string>&lt;&#65;&#x20AC;&gt;</string></dict></plist>",
    )
    assert answer == {"read": {"a&b": "<A\u20ac>"}}


def test_an_integer_beyond_64_bits_never_changes_the_rest(read):
    xml = plistlib.dumps(manifest(FLAGS, count=7)).replace(b">7<", b">99999999999999999999<")
    binary = plistlib.dumps(manifest(FLAGS, count=2**64 - 1), fmt=plistlib.FMT_BINARY)
    for answer in read("manifest", xml, binary):
        assert answer.get("read", PLACED) == PLACED
        assert "read" in answer or "property list" in answer["error"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"bplist00",
        b"not a property list",
        b"<?xml version='1.0'?><plist>",
        b"<?xml version='1.0'?><plist><dict><string/></dict></plist>",
        b"<?xml version='1.0'?><plist><what/></plist>",
    ],
)
def test_what_is_not_a_property_list_is_refused_with_a_reason(read, content):
    (answer,) = read("list", content)
    assert "property list" in answer["error"]


def test_a_list_without_versions_is_not_a_manifest(read, dump):
    for answer in read("manifest", dump({}), dump([]), dump({"Package Version": "7.0.63"})):
        assert "Package Version" in answer["error"]


def test_truncated_manifests_are_refused(read, dump):
    whole = dump(manifest(FLAGS))
    answers = read("manifest", *(whole[:length] for length in range(len(whole.rstrip()))))
    assert all("error" in answer for answer in answers)


def test_changed_bytes_never_do_worse_than_an_error(read):
    # XML only: GNUstep's reader of binary lists crashes on some changed bytes.
    source = np.random.default_rng(1)
    whole = plistlib.dumps(manifest(FLAGS))
    changed = []
    for _ in range(2000):
        content = bytearray(whole)
        for _ in range(source.integers(1, 5)):
            content[source.integers(len(content))] = source.integers(256)
        changed.append(bytes(content))
    answers = read("manifest", *changed)
    assert sum("read" in answer for answer in answers) > 100  # many changes hit text only
    assert sum("error" in answer for answer in answers) > 100


def test_nesting_and_shared_objects_are_bounded(read, dump):
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    bomb: object = ["x"] * 14
    for _ in range(5):  # 14^6 values; plistlib's binary form stores each list once
        bomb = [bomb] * 14
    binary = plistlib.dumps(bomb, fmt=plistlib.FMT_BINARY)
    assert read("list", dump(deep), binary) == [
        {"error": "the property list is nested too deeply"},
        {"error": "the property list is too large"},
    ]


def test_regions_of_a_package(tmp_path, dump):
    directory = tmp_path / "ane_bundle"
    directory.mkdir()
    for key in "abcd":
        (directory / f"{key}.bc.mlir").write_text("x")
    (tmp_path / "manifest.plist").write_bytes(dump(manifest(FLAGS)))
    options = {
        "a": dump({"h17g": {"TargetArchitecture": "h17c"}}),
        "b": dump({"h16g": {}}),
        "c": b"not a property list",
    }
    for key, content in options.items():
        (directory / f"compiler_options_{key}.plist").write_bytes(content)
    targets = {"a": "h17c", "b": "h16g", "c": None, "d": None}
    assert driver("bundle", [tmp_path]) == [
        {
            "read": {
                "fully_placed": True,
                "regions": [{"key": k, "architecture": v} for k, v in targets.items()],
            }
        }
    ]


def test_unreadable_files(tmp_path):
    large = tmp_path / "large.plist"
    large.write_bytes(bytes(2**24 + 1))
    missing, too_large = driver("list", [tmp_path / "none", large])
    assert "cannot read" in missing["error"]
    assert "too large" in too_large["error"]
