"""What all tests share: GPU tests run where MLX can reach a GPU, and are counted elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fake_measure import FakeMeasure
from nnbt.devices import gpu_missing

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        yield


@pytest.fixture
def fake_measure() -> FakeMeasure:
    return FakeMeasure()


@pytest.fixture(autouse=True)
def _same_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the user's shell that change what nnbt prints."""
    for name in ("NO_COLOR", "COLUMNS", "MLX_ENABLE_TF32", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
