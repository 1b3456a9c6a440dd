"""OPTIONS: each row is an option of the commands, a keyword of nnbt.run, and a line of the docs."""

import dataclasses
from pathlib import Path
from typing import Any

import click
import pytest

from nnbt.cli.main import cli, conv, ladder
from nnbt.cli.options import given, plain
from nnbt.machine.devices import DEVICES
from nnbt.pipeline.matrix import ENGINES, METRICS
from nnbt.spec.errors import Refusal
from nnbt.spec.options import (
    OPTIONS,
    Options,
    check,
    make_options,
    options_of,
    params_of,
    python_spelling,
    spelled,
)

COMMANDS: dict[str, click.Command] = {"run": cli, "conv": conv, "ladder": ladder}


def test_a_row_is_found_by_its_name_and_flag_alone() -> None:
    flags = [flag for row in OPTIONS.values() for flag in row.flags]
    flags += [alias.flag for row in OPTIONS.values() for alias in row.aliases]
    assert len(flags) == len(set(flags))
    assert {row.attribute for row in OPTIONS.values() if row.attribute} == {
        field.name for field in dataclasses.fields(Options)
    } - {"params", "lenient"}


def test_the_defaults_can_be_given() -> None:
    check(Options())
    assert make_options({}) == make_options({}, "run") == Options()
    for command in COMMANDS:
        for row in options_of(command):
            row.check(row.default)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("metric", METRICS), ("engine", ENGINES), ("device", DEVICES),
        ("data", OPTIONS["data"].choices),
    ],
)  # fmt: skip
def test_the_help_names_what_can_be_chosen(name: str, known: Any) -> None:
    assert all(f"`{value}`" in OPTIONS[name].described() for value in known)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_a_line_for_each_row(command: str) -> None:
    text = COMMANDS[command].get_help(click.Context(COMMANDS[command], info_name="nnbt"))
    assert "`" not in text
    for row in OPTIONS.values():
        for flag in row.flags:
            assert (f"{flag} " in text or f"{flag}\n" in text) is (command in row.commands), flag
        assert not any(f"{alias.flag} " in text for alias in row.aliases)


def test_what_is_not_given_has_the_defaults_of_the_command() -> None:
    nothing = {param.name: None for param in cli.params if param.name in OPTIONS}
    assert given(nothing) == {}
    assert given(nothing | {"checks": True, "sizes": (8,)}) == {"checks": False, "sizes": (8,)}
    assert given({"counters": False}) == {"counters": False}
    asked = make_options({}, "ladder")
    assert (asked.metrics, asked.dtypes, asked.max_seconds) == (("flops",), ("float32",), 1.0)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("--size 8 conv --fill=zeros", "--sizes 8 conv --data=zeros"),
        ("--sizes 8 16,32 --runs 3", "--sizes 8 --sizes 16 --sizes 32 --runs 3"),
        ("--sizes=8 -1", "--sizes 8 --sizes -1"),
        ("conv --own-weights --iterations 3", "conv --weights own --runs 3"),
        ("conv --shared-weights=1", "conv --shared-weights=1"),
        ("--csv x -- --size 8", "--csv x -- --size 8"),
    ],
)
def test_aliases_are_written_out(args: str, expected: str) -> None:
    assert plain(args.split(), {"conv"}) == expected.split()


def test_an_option_is_spelled_as_it_was_given() -> None:
    cases: dict[tuple[Any, ...], tuple[str, str]] = {
        ("max_seconds", 3.0): ("--max-seconds 3.0", "max_seconds=3.0"),
        ("sizes", (8, 16)): ("--sizes 8 16", "sizes=[8, 16]"),
        ("engine", "native", "kernel"): (
            "--engine native or kernel",
            "engine='native' or 'kernel'",
        ),
        ("checks", False): ("--no-checks", "checks=False"),
        ("library",): ("--try", "library"),
    }
    for asked, (command, python) in cases.items():
        assert spelled(*asked) == command
        with python_spelling():
            assert spelled(*asked) == python


def test_parameters_belong_to_their_metric() -> None:
    assert params_of("flops") == {}
    assert list(params_of("conv")) == [
        "batch", "channels", "layers", "kernel", "weights", "enqueue",
    ]  # fmt: skip
    with pytest.raises(Refusal, match="flops has no parameter 'batch'"):
        check(Options(metrics=("flops",), params={"batch": (1,)}))
    with pytest.raises(Refusal, match="--batch 0 is out of range: use 1 to"):
        check(Options(metrics=("conv",), params={"batch": (1, 0)}))


def test_paths_may_be_objects() -> None:
    assert OPTIONS["save_package"].convert(Path("a")) == "a"
    with pytest.raises(Refusal, match="--save-package 5 is not a path"):
        OPTIONS["save_package"].convert(5)
