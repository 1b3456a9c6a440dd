"""The installed command: what it refuses, prints, writes, and how it ends."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from command import ANSI, COMMAND, QUICK, environment, nnbt, on_terminal, shell
from fake_measure import FakeMeasure
from nnbt.cli import main as cli
from nnbt.ladder import run as ladder_run
from nnbt.pipeline.listener import Listener
from nnbt.pipeline.session import execute
from nnbt.results.result import Run
from nnbt.spec.options import Options
from result_schema import validate

# What cannot be done, and what the sentence has to name.
REFUSALS = [
    (["--sizes", "0"], "--sizes 0"),
    (["--sizes", "-5"], "--sizes -5"),
    (["--sizes", "64", "-5"], "--sizes -5"),
    (["--sizes", "many"], "--sizes 1024 2048"),
    (["--sizes", "1.5"], "'1.5'"),
    (["--sizes", "200000"], "--sizes"),
    (["--sizes", "99999999999999999999"], "1 to"),
    (["--sizes"], "--sizes 1024 2048"),
    (["--sizes", "--dtype", "float32"], "--sizes 1024 2048"),
    (["--sizes", ","], "--sizes 1024 2048"),
    (["--size", "0"], "--sizes 0"),
    (["--dtype", "float33"], "float32"),
    (["--dtype", ""], "--dtype"),
    (["--dtype", "q1"], "--dtype q2"),
    (["--dtype", "q7"], "--dtype q6 or q8"),
    (["--metric", "latency"], "bandwidth"),
    (["--metric", "flops", "--metric", "latency"], "bandwidth"),
    (["--device", "tpu"], "auto cpu"),
    (["--engine", "torch"], "mlx"),
    (["--op", "mul"], "copy"),
    (["--data", "sevens"], "normal uniform"),
    (["--tf32", "maybe"], "default on off"),
    (["--metric", "bandwidth", "--dtype", "q4", "--device", "cpu"], "--dtype"),
    (["--runs", "0"], "1 to"),
    (["--runs", "-1"], "1 to"),
    (["--iterations", "0"], "--runs 0"),
    (["--runs", "few"], "--runs 8"),
    (["--warmup", "-1"], "0 to"),
    (["--graph-steps", "0"], "1 to"),
    (["--cpu-workers", "-1"], "0 to"),
    (["--max-seconds", "nan"], "more than 0"),
    (["--max-seconds", "0"], "more than 0"),
    (["--max-seconds", "1e9"], "at most 86400"),
    (["--max-seconds", "soon"], "--max-seconds 3"),
    (["--csv", "no/such/folder.csv"], "no/such"),
    (["--json", "."], "folder"),
    (["--json", "a" * 300], "another name"),
    (["--csv", "same", "--json", "same"], "--csv and --json"),
    (["--csv", "same", "--json", "./same"], "--csv and --json"),
    (["--csv", ""], "--csv results.csv"),
    (["--frobnicate"], "No such option"),
    (["--frobnicate"], "nnbt --help"),
    (["--dtype"], "nnbt --help"),
    (["ladder", "--frobnicate"], "nnbt ladder --help"),
    (["measure"], "No such command"),
    (["bandwidth"], "nnbt --metric bandwidth"),
    (["--csv", "a.csv", "conv"], "nnbt conv --csv"),
    (["--sizes", "64", "ladder"], "nnbt ladder --sizes"),
    (["--no-fail", "info"], "--no-fail has no effect before info"),
    (["info", "--explain", "weather"], "use one of formulas checks"),
    (["info", "weather"], "use nnbt info"),
]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def assert_refused(done: subprocess.CompletedProcess[str], part: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("nnbt: ")
    assert part in line


@pytest.mark.parametrize(("args", "part"), REFUSALS, ids=[" ".join(r[0])[:40] for r in REFUSALS])
def test_wrong_input_is_one_sentence(args: list[str], part: str, tmp_path: Path) -> None:
    assert_refused(nnbt(*args, cwd=tmp_path), part)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("device", ["gpu", "hybrid"])
def test_a_missing_gpu_is_one_sentence(device: str) -> None:
    done = nnbt("--device", device, CUDA_VISIBLE_DEVICES="")
    assert_refused(done, "--device cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["gpu", "hybrid"])
def test_float64_on_a_gpu_is_one_sentence(device: str) -> None:
    done = nnbt("--device", device, "--dtype", "float64")
    assert_refused(done, "float64")


def test_a_read_only_folder_is_found_before_measuring(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    folder = tmp_path if os.geteuid() else "/proc"  # root may write into the former
    assert_refused(nnbt("--csv", f"{folder}/x.csv"), f"{folder}/x.csv")


@pytest.mark.parametrize(
    "sizes",
    [
        ["--sizes", "64", "65"], ["--sizes", "64", "--sizes", "65"], ["--sizes", "64,65"],
        ["--sizes=64,", "65", "64"], ["--size", "64", "--size=65"],
    ],
)  # fmt: skip
def test_sizes_can_be_typed_in_several_ways(sizes: list[str], tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    done = nnbt("--device", "cpu", *sizes, "--runs", "1", "--csv", target, "--no-checks")
    assert done.returncode == 0, done.stderr
    assert [row["n"] for row in table(target)] == ["64", "65"]


def test_an_option_may_follow_the_sizes(tmp_path: Path) -> None:
    done = nnbt(*QUICK, "--sizes", "65", "--metric", "flops", "--csv", tmp_path / "rows.csv")
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path / "rows.csv")
    assert [(row["metric"], row["n"]) for row in rows] == [("flops", "64"), ("flops", "65")]


def test_cpu_streams_still_works_and_warns(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    done = nnbt(*QUICK, "--cpu-streams", "2", "--csv", target)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "--cpu-streams" in line
    assert "--cpu-workers" in line
    assert table(target)[0]["cpu_workers"] == "2"


def test_aliases_are_the_options_that_they_stand_for(tmp_path: Path) -> None:
    names = ["--size", "64", "--iterations", "3", "--fill", "zeros", "--variant", "fp16"]
    done = nnbt("--device", "cpu", *names, "--csv", tmp_path / "rows.csv", "--no-checks")
    assert done.returncode == 0, done.stderr
    (row,) = table(tmp_path / "rows.csv")
    found = [row[name] for name in ("n", "runs", "data", "dtype")]
    assert found == ["64", "3", "zeros", "float16"]


def test_the_value_of_an_option_may_look_like_a_command(tmp_path: Path) -> None:
    done = nnbt(*QUICK, "--no-checks", "--csv", "ladder", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["n"] for row in table(tmp_path / "ladder")] == ["64"]


def test_auto_says_which_device_it_takes() -> None:
    done = nnbt("--sizes", "64", "--runs", "1", "--no-checks")
    assert done.returncode == 0
    assert done.stderr.startswith("nnbt: device ")
    assert "auto" in done.stderr


def test_both_files_hold_the_rows_that_are_shown(tmp_path: Path) -> None:
    done = nnbt(*QUICK, "--csv", "r.csv", "--json", "r.json", "--dtype", "float16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = table(tmp_path / "r.csv")
    document = json.loads((tmp_path / "r.json").read_text())
    validate(document)
    (result,) = document["results"]
    assert document["finished"] is True
    assert document["argv"][: len(QUICK)] == list(QUICK)
    assert len(result["samples_ns"]) == int(row["runs"]) == 5
    assert float(row["gb_per_s"]) == pytest.approx(result["rate"] / 1e9)
    assert float(row["median_ms"]) == pytest.approx(result["median_s"] * 1e3)
    assert row["reasons"].split() == [reason["code"] for reason in result["reasons"]]
    assert result["verdict"] in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.json"]


@pytest.mark.parametrize(("more", "code"), [([], 1), (["--no-fail"], 0)])
def test_an_invalid_row_ends_with_exit_code_1(more: list[str], code: int) -> None:
    done = nnbt(*QUICK, "--data", "nan", *more)
    assert done.returncode == code
    assert "✗ INVALID" in done.stdout
    assert "INVALID NON_FINITE" in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "nnbt --device cpu --sizes 64 65 66 --metric flops --metric bandwidth --runs 5 | head -1",
        "nnbt info --explain | head -1",
        "nnbt --help | true",
        "nnbt --device cpu --sizes 64 --runs 5 | true",
    ],
)
def test_a_reader_that_leaves_is_no_error(line: str, tmp_path: Path) -> None:
    done = shell(f"{line}; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">&- 2>&-", 0, ""),
        ("<&-", 0, ""),
        pytest.param(
            ">/dev/full",
            1,
            "No space left on device",
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here"),
        ),
    ],
)
def test_streams_that_take_nothing(redirection: str, code: int, said: str, tmp_path: Path) -> None:
    done = shell(f"nnbt {' '.join(QUICK)} --csv rows.csv {redirection}", tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == bool(said)
    assert len(table(tmp_path / "rows.csv")) == 1


def test_a_file_that_fills_up_leaves_the_results_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "pipe.csv").symlink_to("/dev/full")
    done = nnbt(*QUICK, "--csv", "pipe.csv", cwd=tmp_path)
    assert done.returncode == 1
    assert "bandwidth on cpu" in done.stdout
    assert done.stderr.startswith("nnbt: pipe.csv")


def test_a_file_that_can_not_grow_does_not_end_the_sweep(tmp_path: Path) -> None:
    done = shell(f"ulimit -f 1; nnbt {' '.join(QUICK)} --sizes 65 66 --json r.json", tmp_path)
    assert done.returncode == 1
    for n in ("64", "65", "66"):
        assert f"float32  {n}" in done.stdout
    (line,) = done.stderr.splitlines()
    assert "r.json" in line
    assert "File too large" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("how", [">", ">>"])
def test_rows_join_what_stdout_holds_already(name: str, how: str, tmp_path: Path) -> None:
    if not Path(name).parent.exists():
        pytest.skip(f"no {Path(name).parent} here")
    (tmp_path / "out").write_text("before\n")
    done = shell(f"nnbt {' '.join(QUICK)} --sizes 65 --csv {name} {how} out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "out").read_text()
    assert text.startswith("before\n") is (how == ">>")
    assert text.count("metric,device") == 1
    assert "bandwidth on cpu" in text
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_named_pipe_gets_all_rows_once(tmp_path: Path) -> None:
    line = f"mkfifo p; timeout 50 cat p > out & nnbt {' '.join(QUICK)} --sizes 65 --csv p; wait"
    done = shell(line, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["n"] for row in table(tmp_path / "out")] == ["64", "65"]


def test_a_named_pipe_without_a_reader_does_not_wait_for_ever(tmp_path: Path) -> None:
    done = shell(f"mkfifo p; nnbt {' '.join(QUICK)} --csv p", tmp_path)
    assert done.returncode == 1
    assert "bandwidth on cpu" in done.stdout
    assert "it has no reader" in done.stderr


@pytest.mark.parametrize(
    ("link", "target", "part"),
    [
        ("circle", "circle", "Too many levels of symbolic links"),
        ("dangling", "no/such/file", "no/such"),
    ],
)
def test_broken_links_are_refused(link: str, target: str, part: str, tmp_path: Path) -> None:
    (tmp_path / link).symlink_to(target)
    assert_refused(nnbt("--csv", link, "--json", "r.json", cwd=tmp_path), part)


def test_json_into_a_pipe(tmp_path: Path) -> None:
    done = shell(f"nnbt {' '.join(QUICK)} --json /dev/stderr 2>&1 >/dev/null | cat", tmp_path)
    assert json.loads(done.stdout)["finished"] is True


@pytest.mark.parametrize("changes", [{"HOME": None}, {"COLUMNS": "abc"}, {"TERM": "dumb"}])
def test_variables_that_are_missing_or_odd(changes: dict[str, str | None]) -> None:
    done = nnbt(*QUICK, **changes)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_ascii_stream_gets_ascii() -> None:
    done = nnbt(*QUICK, "--data", "nan", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "! INVALID" in done.stdout
    assert done.stdout.isascii()
    assert "verdict" in done.stdout


def test_a_pipe_gets_no_ansi() -> None:
    done = nnbt(*QUICK, TERM="xterm-256color")
    assert "\x1b" not in done.stdout + done.stderr
    assert "verdict" in done.stdout


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_terminal_shows_colour_and_nothing_is_cut(width: int) -> None:
    code, output = on_terminal(
        width, *QUICK, "--metric", "flops", "--dtype", "float32", "--dtype", "q4"
    )
    assert code == 0
    assert "\x1b[" in output
    lines = ANSI.sub("", output).splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in output
    for heading in ("n", "median ms", "GQOPS", "verdict"):
        assert any(heading in line for line in lines)


def test_a_very_narrow_terminal_keeps_the_verdict() -> None:
    _, output = on_terminal(20, *QUICK, "--data", "nan")
    assert "✗ INVALID" in ANSI.sub("", output)


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_gets_none(changes: dict[str, str]) -> None:
    code, output = on_terminal(80, *QUICK, **changes)
    assert code == 0
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) <= 80


def wait_for_rows(path: Path, count: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not (path.exists() and len(table(path)) >= count):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("sent", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_signals_keep_finished_cases(
    sent: signal.Signals, code: int, word: str, tmp_path: Path
) -> None:
    files = ["--csv", tmp_path / "r.csv", "--json", tmp_path / "r.json"]
    process = subprocess.Popen(
        [COMMAND, "--device", "cpu", "--sizes", "32", "4096", "--runs", "2000", *files],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env=environment(),
    )  # fmt: skip
    wait_for_rows(tmp_path / "r.csv", 1, process)
    process.send_signal(sent)
    shown, said = process.communicate(timeout=60)
    assert process.returncode == code
    # Click ends the line that holds the ^C of the terminal.
    assert said.strip("\n").startswith(f"nnbt: {word}; ")
    assert "bandwidth on cpu" in shown
    document = json.loads((tmp_path / "r.json").read_text())
    validate(document)
    assert document["finished"] is False
    assert [row["case"]["n"] for row in document["results"]] == [32]
    assert [row["n"] for row in table(tmp_path / "r.csv")] == ["32"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.json"]


@pytest.mark.parametrize(
    ("args", "left"),
    [
        ([], "kept"), (["--runs", "3"], "kept"), (["conv", "--sizes", "8"], "kept"),
        (["ladder"], "--json"), (["info"], ""), (["sign-helper"], ""),
    ],
)  # fmt: skip
def test_early_ends(
    args: list[str], left: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def end(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.cli, "main", end)
    assert cli._run(args) == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nnbt: interrupted")
    assert left in line
    assert (";" in line) is bool(left)


def test_interrupted_ladder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    rungs: list[Options] = []

    def first_only(asked: Options, *, listener: Listener, **_: object) -> Run:
        if rungs:
            raise KeyboardInterrupt
        rungs.append(asked)
        return execute(asked, measure=FakeMeasure(), listener=listener)

    monkeypatch.setattr(ladder_run, "execute", first_only)
    files = ["--csv", str(tmp_path / "r.csv"), "--json", str(tmp_path / "r.json")]
    args = ["--device", "cpu", "--metric", "bandwidth", "--sizes", "64", *files]
    assert cli._run(["ladder", *args]) == 130
    assert "bandwidth on cpu (native)" in capsys.readouterr().out
    document = json.loads((tmp_path / "r.json").read_text())
    validate(document)
    assert document["finished"] is False
    assert document["ladder"] is None
    assert len(document["results"]) > 1
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.parametrize("delay_s", [0.08, 0.15, 0.3, 0.6])
def test_ctrl_c_while_it_starts_is_no_traceback(delay_s: float) -> None:
    process = subprocess.Popen(
        [COMMAND, "--device", "cpu", "--sizes", "64", "4096", "--max-seconds", "9"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    if "site" not in said:  # before this package is reached, Python itself ends with a traceback
        assert process.returncode in (130, -signal.SIGINT)
        assert "nnbt/" not in said


def test_no_data_is_a_warning_of_numpy() -> None:
    options = ["--op", "add", "--data", "nan", "--dtype", "float32", "--dtype", "bfloat16"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "nnbt", *QUICK, *options, "--no-fail"],
        capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    assert "ERROR" not in done.stdout
    assert done.stdout.count("✗ INVALID") == 2


@pytest.mark.parametrize("same", [False, True])
def test_two_runs_at_once_leave_whole_files(same: bool, tmp_path: Path) -> None:
    targets = [tmp_path / "0.json", tmp_path / ("0.json" if same else "1.json")]
    runs = [
        subprocess.Popen([COMMAND, *QUICK, "--sizes", "65", "66", "--json", target])
        for target in targets
    ]
    assert [run.wait(60) for run in runs] == [0, 0]
    for target in targets:
        document = json.loads(target.read_text())
        assert document["finished"] is True
        assert len(document["results"]) == 3
    assert set(tmp_path.iterdir()) == set(targets)


@pytest.mark.parametrize(
    "command", [[COMMAND], [COMMAND.with_name("nn-backend-test")], [sys.executable, "-m", "nnbt"]]
)
def test_each_name_of_the_command(command: list[object]) -> None:
    done = subprocess.run(
        [*map(str, command), "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"nnbt {version('nn-backend-test')}\n")


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["info"], ["info", "--explain"], ["info", "--help"]]
)
def test_answers_without_measuring_import_nothing_heavy(args: list[str]) -> None:
    code = (
        "import sys\n"
        "from nnbt.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: code = end.code\n"
        "heavy = [m for m in ('mlx', 'numpy', 'rich', 'scipy') if m in sys.modules]\n"
        "print(code, heavy, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False
    )
    assert done.stderr == "0 []\n"
    assert done.stdout


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, nnbt\n"
        "nnbt.__version__, dir(nnbt), nnbt.Unsupported, nnbt.measure, nnbt.Options\n"
        "print([m for m in ('mlx', 'numpy', 'rich', 'click') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_file_in_a_folder_that_is_gone_is_refused(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = shell(f"rmdir {gone} && nnbt --device cpu --sizes 64 --runs 5 --json x.json", gone)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
