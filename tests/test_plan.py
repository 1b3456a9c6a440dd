"""nnbt.pipeline.plan: options become cases, or one sentence."""

import re

import pytest

from nnbt._native import Unsupported
from nnbt.pipeline import plan
from nnbt.pipeline.matrix import cell_of
from nnbt.pipeline.memory import check_memory
from nnbt.pipeline.plan import Planned, default_op, make_plan
from nnbt.spec.case import Case
from nnbt.spec.options import Options

GIB = 2**30


def planned(**changes: object) -> tuple[Planned, ...]:
    return make_plan(Options(**{"device": "cpu", "cpu_workers": 2} | changes)).planned  # type: ignore[arg-type]


def cases(**changes: object) -> tuple[Case, ...]:
    return tuple(item.case for item in planned(**changes))


def test_the_defaults_are_the_documented_ones() -> None:
    assert [(case.metric, case.dtype, case.n) for case in cases()] == [
        ("bandwidth", "float32", 1024),
        ("bandwidth", "float32", 2048),
        ("bandwidth", "float32", 4096),
    ]
    options = Options()
    assert (options.graph_steps, options.warmup, options.runs) == (4, 2, None)


def test_cases_are_all_combinations_in_order_and_once() -> None:
    made = cases(metrics=("flops", "flops"), dtypes=("q4", "bool_", "bool"), sizes=(64, 32, 64))
    assert [(case.dtype, case.n) for case in made] == [
        ("q4", 64), ("q4", 32), ("bool", 64), ("bool", 32),
    ]  # fmt: skip


def test_a_case_has_the_parameters_of_its_metric() -> None:
    (bandwidth,) = cases(sizes=(64,), op="add", data=("zeros",))
    (graph,) = cases(sizes=(64,), metrics=("flops_graph",), graph_steps=7)
    assert dict(bandwidth.params) == {"op": "add", "cpu_workers": 2, "data": "zeros"}
    assert dict(graph.params) == {"graph_steps": 7, "cpu_workers": 2, "data": "normal"}


def test_the_tf32_switch_is_part_of_a_case_once_it_is_set() -> None:
    (case,) = cases(sizes=(64,), metrics=("flops",), tf32="off")
    assert case.params["tf32"] == "off"


def test_all_processors_are_workers_by_default() -> None:
    (case,) = cases(sizes=(64,), cpu_workers=0)
    assert case.params["cpu_workers"] == plan.machine().usable_cpus


@pytest.mark.parametrize(
    ("device", "metal", "op"),
    [
        ("cpu", False, "copy"), ("cpu", True, "copy"), ("gpu", True, "copy"), ("gpu", False, "add"),
        ("hybrid", False, "add"),
    ],
)  # fmt: skip
def test_the_operation_of_each_device(device: str, metal: bool, op: str) -> None:
    assert default_op(device, metal=metal) == op


def test_an_operation_that_counts_for_nothing_is_said() -> None:
    made = make_plan(Options(device="cpu", metrics=("flops",), sizes=(64,), op="copy"))
    (note,) = made.notes
    assert "--op" in note


def test_a_working_set_beyond_free_memory_is_refused_with_the_figures() -> None:
    with pytest.raises(Unsupported) as refused:
        check_memory(planned(sizes=(20000,)), {"cpu": GIB})
    sentence = str(refused.value)
    assert re.search(r"n = 20000 needs [\d.]+ GiB but cpu has 1\.0 GiB free", sentence)
    smaller = int(sentence.split("--sizes ")[1].split(maxsplit=1)[0])
    check_memory(planned(sizes=(smaller,)), {"cpu": GIB})


@pytest.mark.parametrize(
    ("name", "value", "free"),
    [("channels", 100_000, GIB), ("batch", 5000, GIB), ("layers", 9000, GIB), ("n", 9000, GIB)],
)
def test_conv_is_told_which_option_is_too_large(name: str, value: int, free: int) -> None:
    def chain(value: int) -> tuple[Planned, ...]:
        size = value if name == "n" else 64
        params = {} if name == "n" else {name: (value,)}
        return planned(metrics=("conv",), sizes=(size,), params=params)

    with pytest.raises(Unsupported) as refused:
        check_memory(chain(value), {"cpu": free})
    option, smaller = re.findall(r"(--\w+) (\d+) or less", str(refused.value))[0]
    assert option == ("--sizes" if name == "n" else f"--{name}")
    check_memory(chain(int(smaller)), {"cpu": free})


def test_memory_that_nobody_knows_refuses_nothing() -> None:
    check_memory(planned(sizes=(10**6,)), {})


def test_each_side_of_hybrid_needs_its_memory() -> None:
    case = Case("bandwidth", "hybrid", "mlx", "float32", 20000, {"op": "add"})
    both = Planned.of(case, cell_of(case))
    for small in ("cpu", "gpu"):
        with pytest.raises(Unsupported, match=f"but {small} has"):
            check_memory([both], {"cpu": 64 * GIB, "gpu": 64 * GIB} | {small: GIB})
