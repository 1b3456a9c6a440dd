"""What all tests share: GPU tests run where MLX can reach a GPU, and are counted elsewhere."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import fake_helper as helper_double
from fake_measure import FakeMeasure
from nnbt.machine.devices import gpu_missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# MLX's BLAS and NumPy's read these when they load; a test run with them set is another run.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LD_PRELOAD")

GPU = ("gpu", True)


def pytest_report_header() -> str:
    here = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    threads = ", ".join(f"{name}={value}" for name, value in here.items()) or "library defaults"
    return f"threads: {threads}; GPU: {gpu_missing() or 'visible'}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = gpu_missing()
    for item in items:
        if item.get_closest_marker("gpu"):
            item.user_properties.append(GPU)
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"needs a GPU. {missing}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    def count(outcome: str) -> int:
        reports = terminalreporter.getreports(outcome)
        return sum(GPU in report.user_properties for report in reports)

    ran, skipped = count("passed") + count("failed"), count("skipped")
    terminalreporter.write_line(f"GPU tests: {ran} ran, {skipped} skipped")


@pytest.fixture(autouse=True, scope="session")
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps ceilings that tests measure out of the user's cache, here and in other processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_is_heard() -> None:
    """A shell's background jobs (`pytest &`, CI) ignore SIGINT, and so would what tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def fake_measure() -> FakeMeasure:
    return FakeMeasure()


@dataclass
class FakeHelper:
    """The helper process of a test: what it is told to do, and what it was asked."""

    path: Path
    log: Path
    patch: pytest.MonkeyPatch
    rules: list[dict[str, Any]] = field(default_factory=list)

    def rule(self, do: str | dict[str, Any], **when: object) -> None:
        """Where a request has these keys, the helper dies so, or its document has these keys."""
        self.rules.append({"when": when, "do": do})
        script = {"log": str(self.log), "rules": self.rules}
        self.patch.setenv("NNBT_FAKE_HELPER", json.dumps(script))

    def requests(self, **when: object) -> list[dict[str, Any]]:
        """What it was asked so far, in order."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        asked = [json.loads(line) for line in lines]
        return [one for one in asked if all(one.get(key) == when[key] for key in when)]


@pytest.fixture
def fake_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHelper:
    """A helper process of its own, and a data folder of its own for a signed copy."""
    monkeypatch.setenv("NNBT_HELPER", str(helper_double.install(tmp_path)))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    log = tmp_path / "requests.jsonl"
    monkeypatch.setenv("NNBT_FAKE_HELPER", json.dumps({"log": str(log)}))
    return FakeHelper(tmp_path / "nnbt_helper", log, monkeypatch)


@pytest.fixture(autouse=True)
def _same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the user's shell that change what nnbt prints."""
    for name in ("NO_COLOR", "COLUMNS", "MLX_ENABLE_TF32", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
