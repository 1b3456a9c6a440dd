"""nnbt.results.result: JSON without NaN, and files that are whole or old."""

import os
import stat
from pathlib import Path

import pytest

from nnbt.machine.files import check_writable, write_atomically
from nnbt.results.result import Result, Run
from nnbt.spec.case import Case

CASE = Case("flops", "cpu", "mlx", "float32", 64, {"data": "normal", "cpu_workers": 2})


def measured(**changes: object) -> Result:
    values: dict[str, object] = {
        "verdict": "VALID", "median_s": 1e-3, "rate": 1e9, "unit": "FLOP/s",
        "samples_ns": (1_000_000,),
    }  # fmt: skip
    return Result(CASE, **values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("row", "failed"),
    [
        (measured(), False),
        (measured(verdict="SUSPECT"), False),
        (measured(verdict="INVALID"), True),
        (Result(CASE, "UNSUPPORTED", "no", unit="FLOP/s"), False),
        (Result(CASE, "ERROR", "fell", unit="FLOP/s"), True),
    ],
)
def test_which_rows_fail_a_run(row: Result, failed: bool) -> None:
    assert Run({}, [], "", [measured(), row]).failed is failed


def test_cases_are_found_that_agree_in_everything_else() -> None:
    other = Case("flops", "cpu", "library", "float32", 64, CASE.params)
    assert CASE.without("engine") == other.without("engine")
    assert CASE.without("dtype") != other.without("dtype")


def test_a_new_file_has_the_mode_that_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("old")
    path.chmod(0o604)
    write_atomically(path, "new\r\nlines")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.read_bytes() == b"new\r\nlines"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there/target"
    link.symlink_to(target)
    write_atomically(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert check_writable(pipe) is None
        write_atomically(pipe, "text")
        assert os.read(reader, 100) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_checking_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    assert check_writable(tmp_path / "new") is None
    assert check_writable(tmp_path / "there") is None
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("", "is a folder"), ("no/file", "create it first"), ("file/below", "use another name"),
        ("x" * 300, "use another name"), ("circle", "use another name"),
        ("dangling", "create it first"),
    ],
)  # fmt: skip
def test_paths_that_can_not_be_written(name: str, part: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "dangling").symlink_to(tmp_path / "no/file")
    assert part in str(check_writable(tmp_path / name))
