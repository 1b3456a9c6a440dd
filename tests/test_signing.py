"""nnbt sign-helper with a pretended codesign, and nnbt info ane with a pretended helper."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from command import nnbt
from nnbt.cli import main as cli
from nnbt.engines.mpsgraph import ane, helper, signing
from nnbt.engines.mpsgraph import info as ane_info

if TYPE_CHECKING:
    from conftest import FakeHelper

CODESIGN = """#!/bin/sh
printf '%s\\n' "$@" > "{log}"
cat "$4" > "{keys}"
echo "{words}" >&2
exit {code}
"""


@pytest.fixture
def codesign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a codesign on the PATH that notes its arguments and its entitlements."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def put(code: int = 0, words: str = "") -> None:
        script = folder / "codesign"
        names = {"log": tmp_path / "arguments", "keys": tmp_path / "keys"}
        script.write_text(CODESIGN.format(code=code, words=words, **names))
        script.chmod(0o755)

    put()
    return put


def run(*args: str) -> int:
    return cli._run(list(args))


pytestmark = pytest.mark.usefixtures("fake_helper", "codesign")
OK = {"selftest": {"counters": "ok", "entitled": True}}


def test_a_signed_copy(fake_helper: FakeHelper, tmp_path: Path, capsys: Any) -> None:
    before = fake_helper.path.read_bytes()
    fake_helper.rule(OK, op="selftest", helper="nnbt_helper_signed")
    assert run("sign-helper") == 0
    out = capsys.readouterr().out
    copy = helper.signed_path()
    assert str(copy).startswith(str(tmp_path / "data"))
    assert f"ok: {ane.STATUSES['ok']}" in out
    assert "csrutil" not in out  # nothing else is needed
    *head, target = (tmp_path / "arguments").read_text().splitlines()
    assert head[:3] == ["-s", "-", "--entitlements"]
    assert head[4:] == ["-f"]
    assert target.endswith(f"/{copy.name}")
    assert plistlib.loads((tmp_path / "keys").read_bytes()) == {
        "com.apple.ane.hardware-counters": True
    }
    assert fake_helper.path.read_bytes() == before
    assert copy.read_bytes() == before  # the pretended codesign changes nothing
    assert os.access(copy, os.X_OK)
    assert sorted(path.name for path in copy.parent.iterdir()) == [
        "nnbt_helper_signed", "nnbt_helper_signed.sha256",
    ]  # fmt: skip
    assert [one["helper"] for one in fake_helper.requests()] == ["nnbt_helper_signed"]


def test_a_copy_that_reads_no_counters(capsys: Any) -> None:
    assert run("sign-helper") == 1
    out = capsys.readouterr().out
    assert f"locked_mask_zeroed: {ane.STATUSES['locked_mask_zeroed']}" in out
    words = " ".join(out.split())
    assert all(paragraph in words for paragraph in signing.CONSEQUENCES)
    for command in (signing.BOOT_ARGS, "csrutil disable", "nvram -d boot-args", "--undo"):
        assert any(command in paragraph for paragraph in signing.CONSEQUENCES)


@pytest.mark.parametrize("deed", ["kill", "exit 137"])
def test_a_killed_copy_is_named(
    fake_helper: FakeHelper, codesign: Any, capsys: Any, deed: str
) -> None:
    if deed == "kill":
        fake_helper.rule("kill", helper="nnbt_helper_signed")
    else:
        fake_helper.path.write_text("#!/bin/sh\nexit 137\n")
    codesign()
    assert run("sign-helper") == 1
    out = capsys.readouterr().out
    assert f"killed_by_amfi: {ane.STATUSES['killed_by_amfi']}" in " ".join(out.split())
    assert helper.signed_path().is_file()  # it may work after a restart with other boot-args


def test_undo_removes_the_copy(fake_helper: FakeHelper, capsys: Any) -> None:
    assert run("sign-helper") == 1
    copy = helper.signed_path()
    capsys.readouterr()
    assert run("sign-helper", "--undo") == 0
    assert capsys.readouterr().out == f"removed {copy}\nremoved {copy.with_suffix('.sha256')}\n"
    assert list(copy.parent.iterdir()) == []
    assert fake_helper.path.is_file()
    assert run("sign-helper", "--undo") == 0
    assert capsys.readouterr().out == "there is no signed copy\n"


def test_the_signed_copy_reads_counters_only(
    fake_helper: FakeHelper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nnbt._native.conv_available", lambda: None)
    assert run("sign-helper") == 1
    args = ("--device", "ane", "--variant", "fp16", "--size", "8", "--channels", "4", "--layers",
            "3", "--iterations", "5", "--no-checks", "--no-gpu")  # fmt: skip
    assert run("conv", *args) == 0
    asked = {one["helper"] for one in fake_helper.requests(pmu=1)}
    others = {one["helper"] for one in fake_helper.requests(runs=5)}
    assert (asked, others) == ({"nnbt_helper_signed"}, {"nnbt_helper"})
    assert helper.for_counters().signed
    assert run("sign-helper", "--undo") == 0
    assert run("conv", *args) == 0
    assert fake_helper.requests(pmu=1)[-1]["helper"] == "nnbt_helper"


def test_rows_of_a_killed_signed_copy(
    fake_helper: FakeHelper, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("nnbt._native.conv_available", lambda: None)
    fake_helper.rule("kill", helper="nnbt_helper_signed")
    assert run("sign-helper") == 1
    capsys.readouterr()
    assert run("conv", "--device", "ane", "--variant", "int8", "--size", "8", "--channels", "4",
               "--layers", "3", "--iterations", "5", "--no-checks") == 0  # fmt: skip
    out = capsys.readouterr().out
    assert f"counters killed_by_amfi: {ane.STATUSES['killed_by_amfi']}" in out
    assert "GOPS" in out


def test_copies_of_another_version(fake_helper: FakeHelper, capsys: Any) -> None:
    assert run("sign-helper") == 1
    with fake_helper.path.open("a") as file:
        file.write("# a newer version\n")
    assert helper.signed_copy() is None
    assert helper.for_counters().path == fake_helper.path
    capsys.readouterr()
    assert run("info", "ane") == 0
    assert "of another version" in capsys.readouterr().out


def test_words_of_codesign_are_shown(fake_helper: FakeHelper, codesign: Any, capsys: Any) -> None:
    codesign(1, "the object file format is invalid")
    assert run("sign-helper") == 2
    assert "(the object file format is invalid)" in capsys.readouterr().err
    assert not helper.signed_path().exists()
    assert fake_helper.requests() == []
    assert list(helper.signed_path().parent.iterdir()) == []


def test_a_failing_codesign_leaves_an_earlier_copy(codesign: Any) -> None:
    assert run("sign-helper") == 1
    before = helper.signed_path().read_bytes()
    codesign(1)
    assert run("sign-helper") == 2
    assert helper.signed_path().read_bytes() == before
    assert helper.signed_copy() is not None


def test_broken_codesign(codesign: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    codesign()
    script = Path(str(shutil.which("codesign")))
    monkeypatch.setattr(signing, "_TIMEOUT_S", 0.3)
    script.write_text("#!/bin/sh\nexec sleep 20\n")
    assert run("sign-helper") == 2
    script.write_text("no program")
    assert run("sign-helper") == 2
    hanging, broken = capsys.readouterr().err.splitlines()
    assert hanging.startswith(f"nnbt: {script} took over 0.3 s: ")
    assert broken.startswith(f"nnbt: {script} ")
    assert "(Exec format error): " in broken
    assert list(helper.signed_path().parent.iterdir()) == []


def test_undo_without_a_copy(
    fake_helper: FakeHelper, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(fake_helper.path))  # a file
    assert run("sign-helper", "--undo") == 0
    assert capsys.readouterr().out == "there is no signed copy\n"


def test_a_data_folder_that_cannot_be_written_is_a_sentence(
    fake_helper: FakeHelper, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(fake_helper.path))  # a file
    assert run("sign-helper") == 2
    err = capsys.readouterr().err
    assert str(helper.signed_path()) in err
    assert err.count("\n") == 1


def test_without_codesign_or_helper_there_is_one_sentence(
    fake_helper: FakeHelper, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("PATH", str(fake_helper.path.parent / "empty"))
    assert run("sign-helper") == 2
    assert "codesign" in capsys.readouterr().err
    monkeypatch.setenv("NNBT_HELPER", str(fake_helper.path.parent / "none"))
    assert run("sign-helper") == 2
    err = capsys.readouterr().err
    assert str(helper.helper_path()) in err
    assert err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "darwin", reason="the macOS package has a helper")
@pytest.mark.parametrize("args", [("sign-helper",), ("info", "ane")])
def test_the_installed_command_says_that_this_is_for_macos(args: tuple[str, ...]) -> None:
    done = nnbt(*args, NNBT_HELPER=None)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nnbt: ")
    assert done.stderr.count("\n") == 1
    assert "macOS" in done.stderr


def test_info_ane_names_parts_and_locks(fake_helper: FakeHelper, capsys: Any) -> None:
    assert run("info", "ane") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100 or str(fake_helper.path) in out
    words = " ".join(out.split())
    for expected in (
        "driver com.apple.driver.AppleH16ANE", "architecture h16g", "cores 16", "firmware 208.17",
        "virtual machine no", "framework complete", "boot-args none", "SIP enabled",
        "entitlement no ",
        f"access locked_mask_zeroed: {ane.STATUSES['locked_mask_zeroed']}",
        f"energy by rail frozen_zero: {ane_info.POWER['frozen_zero']}",
        "thermal state nominal", "low-power mode off",
        ane_info.NOT_RUN,
    ):  # fmt: skip
        assert expected in words
    assert [one["op"] for one in fake_helper.requests()] == ["info", "selftest"]


def test_info_ane_shows_what_the_framework_lacks(fake_helper: FakeHelper, capsys: Any) -> None:
    lacks = {"framework_complete": False, "missing": ["_ANEClient", "loadModel:"], "sip": None}
    fake_helper.rule({"ane": lacks, "power": None}, op="info")
    fake_helper.rule("abort", op="selftest")
    assert run("info", "ane") == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "framework lacks _ANEClient, loadModel:" in words
    assert "SIP unknown" in words
    assert "entitlement unknown" in words
    assert f"access aborted: {ane.STATUSES['aborted']}" in words
    assert "energy by rail" not in words


@pytest.mark.parametrize(
    "odd",
    [
        {"ane": "words"}, {"ane": [1]}, {"power": []}, {"selftest": 5},
        {"ane": {"missing": 5, "framework_complete": False, "boot_args": [1], "cores": {}}},
        {"selftest": {"counters": [], "entitled": "x", "detail": {}}, "power": {"ioreport": []}},
    ],
)  # fmt: skip
def test_info_ane_shows_any_document(fake_helper: FakeHelper, capsys: Any, odd: Any) -> None:
    fake_helper.rule(odd)
    assert run("info", "ane") == 0
    assert "Neural Engine" in capsys.readouterr().out


@pytest.mark.parametrize("deed", ["kill", "silence", "garbage"])
def test_info_of_a_broken_helper(fake_helper: FakeHelper, capsys: Any, deed: str) -> None:
    fake_helper.rule(deed)
    assert run("info", "ane") == 2
    err = capsys.readouterr().err
    assert err.startswith("nnbt: ")
    assert err.count("\n") == 1


def test_every_state_of_power_has_words() -> None:
    assert set(ane_info.POWER) == {"ok", "absent", "denied", "frozen_zero"}


def test_info_imports_neither_mlx_nor_numpy() -> None:
    code = (
        "import sys; from nnbt.cli import main as cli; "
        "assert cli._run(['info', 'ane']) == 0; assert cli._run(['info']) == 0; "
        "sys.exit(bool({'numpy', 'rich', 'mlx.core'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
