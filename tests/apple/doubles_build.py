"""Uses the doubles' extension as nnbt._native, and provides their helper process.

A pytest plugin (-p doubles_build), so that it is loaded before any module of nnbt.
NNBT_DOUBLES_BUILD is the build directory (`.ci/apple run`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ["NNBT_DOUBLES_BUILD"])
HELPER = BUILD / "nnbt_helper"
WITHOUT_ANE = BUILD / "nnbt_helper_without_ane"
MODULE = next(BUILD.glob("_native.*.so"))


def _load():
    spec = importlib.util.spec_from_file_location("nnbt._native", MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["nnbt._native"] = module
    spec.loader.exec_module(module)
    return module


native = _load()
live_objects = ctypes.CDLL(str(MODULE)).nnbt_doubles_live_objects
live_objects.restype = ctypes.c_long


def helper(request, **changes):
    """The helper's document for a small chain; `request` overrides its shape."""
    # Imported here: the module takes its _native from what _load() put into sys.modules.
    from nnbt.engines.mpsgraph.helper import run_helper

    request = {"size": 5, "channels": 2, "layers": 2, "runs": 3, "warmup": 1, **request}
    return run_helper(request, **{"executable": HELPER, **changes})


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    """Checks that nothing is left in the temporary directory, even after failures."""
    directory = tmp_path_factory.mktemp("tmp")
    monkeypatch.setenv("TMPDIR", str(directory))
    yield
    left = [path for path in directory.rglob("*") if "MetalPerformance" not in str(path)]
    assert left == []


@pytest.fixture
def fault(monkeypatch):
    return lambda names: monkeypatch.setenv("NNBT_DOUBLE_FAULT", names)


@pytest.fixture
def script(monkeypatch):
    """Sets what the engine reports and counts, {register: change per evaluation}."""

    def set_(changes, /, **said):
        words = [f"{key}={value}" for key, value in {**said, **changes}.items()]
        monkeypatch.setenv("NNBT_DOUBLE_ANE", " ".join(words))

    return set_
