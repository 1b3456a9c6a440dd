"""Metric conv and its command: arithmetic, checked results on the CPU, refusals, and the MPSGraph
seam against a step that computes nothing."""

import csv
import itertools
import json
import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import correlate2d

import nnbt
from nnbt import _native
from nnbt._native import Unsupported
from nnbt.cli import main as cli
from nnbt.cli.conv import conv_options
from nnbt.engines import mlx
from nnbt.engines.mlx import conv as mlx_conv
from nnbt.peaks import reference
from nnbt.pipeline.listener import Listener
from nnbt.pipeline.plan import make_plan
from nnbt.results.files import load
from nnbt.spec.case import Case
from nnbt.spec.conv import Chain, border_gains, conv_sizes
from nnbt.spec.options import Options, params_of

SMALL = ("--device", "cpu", "--sizes", "8", "--channels", "4", "--layers", "3", "--runs", "5")
DEFAULTS = {name: row.default for name, row in params_of("conv").items()}


def case(n=256, dtype="float16", device="gpu", engine="mlx", **params):
    return Case("conv", device, engine, dtype, n, {**DEFAULTS, "data": "normal", **params})


def measure(n=8, dtype="float32", data="normal", runs=1, **params):
    params = {"channels": 4, "layers": 3, **params}
    run = nnbt.run(
        "conv", "cpu", dtype, [n], data=data, runs=runs, warmup=0, max_seconds=0.2, params=params
    )
    assert [row.reason for row in run.results] == [""] * len(run.results)
    return run.results[0]


def codes(row):
    return {reason.code for reason in row.reasons}


@pytest.mark.parametrize(
    ("n", "channels", "layers", "ops"),
    [
        (256, 128, 20, 386_547_056_640),
        (256, 256, 50, 3_865_470_566_400),
        (64, 128, 10, 12_079_595_520),
    ],
)
def test_operations_are_those_of_the_published_tables(n, channels, layers, ops):
    sizes = conv_sizes(case(n, channels=channels, layers=layers))
    assert sizes["work_ops"] == ops
    assert sizes["exact_ops"] == pytest.approx(ops * ((3 * n - 2) / (3 * n)) ** 2, rel=1e-12)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_operations_agree_with_the_native_count(n, kernel):
    chain = {"batch": 2, "channels": 5, "layers": 3, "kernel": kernel}
    native = _native.conv_work(_native.ConvSpec(size=n, **chain))
    sizes = conv_sizes(case(n, **chain))
    assert (sizes["work_ops"], sizes["exact_ops"]) == (native.ops, native.exact_ops)
    assert sizes["act_bytes"] == native.input_bytes


def test_only_the_weight_bytes_depend_on_sharing_and_enqueue_multiplies_work():
    own, shared, queued = (
        conv_sizes(case(**changes)) for changes in ({}, {"weights": "shared"}, {"enqueue": 3})
    )
    assert own["weight_bytes"] == 20 * shared["weight_bytes"] == 20 * 128 * 128 * 9 * 2
    assert own["work_ops"] == shared["work_ops"]
    assert queued["work_ops"] == 3 * own["work_ops"]


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_border_gains_are_those_of_a_convolution_with_ones(kernel):
    n, layers = 6, 4
    before = (kernel - 1) // 2
    padding = (before, kernel - 1 - before)
    power = np.ones((n, n))
    expected = []
    for _ in range(layers):
        following = correlate2d(np.pad(power, padding), np.ones((kernel, kernel)), "valid")
        following = following / kernel**2
        expected.append(math.sqrt(following.mean() / power.mean()))
        power = following
    assert border_gains(n, kernel, layers) == pytest.approx(expected)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
def test_patches_give_scipys_correlation_at_every_pixel(kernel):
    chain = Chain.of(case(6, batch=2, channels=3, kernel=kernel))
    random = np.random.default_rng(7)
    image = random.standard_normal((2, 6, 6, 3))
    weight = random.standard_normal((3, kernel, kernel, 3))
    padding = (chain.before, kernel - 1 - chain.before)
    expected = np.zeros_like(image)
    for b, o, c in itertools.product(range(2), range(3), range(3)):
        padded = np.pad(image[b, :, :, c], padding)
        expected[b, :, :, o] += correlate2d(padded, weight[o, :, :, c], "valid")
    indices, inside = mlx_conv.patches(chain, list(range(2 * 36)))
    values = image.reshape(-1, 3)[indices] * inside[:, :, None]
    found = values.reshape(72, -1) @ weight.reshape(3, -1).T
    assert found == pytest.approx(expected.reshape(72, 3))


def test_sampled_pixels_hold_the_corners_and_lie_in_several_columns():
    chain = Chain.of(case(60, batch=2))
    pixels = mlx_conv.sample_pixels(chain, 3)
    assert {0, 59, 60 * 59, 3599} <= set(pixels)
    assert max(pixels) < 7200
    assert len({pixel % 60 for pixel in pixels}) > 20


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 9), ("bfloat16", 6.5), ("float32", 18)])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("weights", ["own", "shared"])
def test_outputs_are_right_in_every_type(dtype, bits, kernel, weights):
    row = measure(dtype=dtype, kernel=kernel, weights=weights, batch=2)
    assert row.effective_bits > bits
    assert not codes(row) & {"WRONG_ANSWER", "REDUCED_PRECISION", "NON_FINITE", "DEGENERATE_DATA"}
    assert "the first and the last layer" in row.answer.compared
    assert row.unit == "OP/s"
    assert row.rate == pytest.approx(row.sizes["work_ops"] / row.median_s)


def test_one_layer_is_compared_once():
    assert "of the layer " in measure(layers=1).answer.compared


@pytest.mark.parametrize("layers", [20, 50])
@pytest.mark.parametrize("weights", ["own", "shared"])
@pytest.mark.parametrize("channels", [4, 24])
def test_long_chains_keep_their_size_in_float16(layers, weights, channels):
    row = measure(12, "float16", layers=layers, weights=weights, channels=channels)
    answer = row.answer
    assert answer.outputs.all_finite
    assert answer.outputs.zero < 0.5
    assert 0.05 < answer.outputs.rms / answer.inputs.rms < 20
    assert not codes(row) & {"CHAIN_CHANGES_SIZE", "NON_FINITE", "DEGENERATE_DATA"}


def _rolled(mx, z, y, layer):
    del z, layer
    return mx.roll(y, 1, axis=2)


def _borderless(mx, z, y, layer):
    del z, layer
    return mx.pad(y[:, 1:-1, 1:-1], [(0, 0), (1, 1), (1, 1), (0, 0)])


def _skipped(mx, z, y, layer):
    del mx
    return z if layer == 2 else y


def _zero(mx, z, y, layer):
    del z, layer
    return mx.zeros_like(y)


def _swapped(mx, z, y, layer):
    del mx, z
    return y[..., ::-1] if layer == 0 else y


@pytest.mark.parametrize("fault", [_rolled, _borderless, _skipped, _zero, _swapped])
def test_planted_wrong_answers_are_invalid(monkeypatch, fault):
    trace = mlx_conv._Layers.trace

    def faulty(self, index, length):
        count = itertools.count()
        right = self.convolve

        def wrong(z, weight):
            return fault(self.mx, z, right(z, weight), next(count))

        self.convolve = wrong
        try:
            return trace(self, index, length)
        finally:
            self.convolve = right

    monkeypatch.setattr(mlx_conv._Layers, "trace", faulty)
    row = measure()
    assert row.verdict == "INVALID"
    assert "WRONG_ANSWER" in codes(row)


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("skipped", [{1, 3, 5}, {4}])
def test_layers_skipped_in_the_middle_are_invalid(monkeypatch, kernel, skipped):
    trace = mlx_conv._Layers.trace

    def faulty(self, index, length):
        count = itertools.count()
        right = self.convolve
        self.convolve = lambda z, weight: z if next(count) in skipped else right(z, weight)
        try:
            return trace(self, index, length)
        finally:
            self.convolve = right

    shape = {"n": 40, "layers": 8, "kernel": kernel, "batch": 2}
    assert "WRONG_ANSWER" not in codes(measure(**shape))
    monkeypatch.setattr(mlx_conv._Layers, "trace", faulty)
    assert "WRONG_ANSWER" in codes(measure(**shape))


def test_a_middle_layer_that_never_convolves_is_invalid(monkeypatch):
    """Neither the timed runs nor the corners that are computed again."""
    convolve = mlx_conv._Layers.convolve

    def faulty(self, z, weight):
        return z if weight is self.weights[2] else convolve(self, z, weight)

    monkeypatch.setattr(mlx_conv._Layers, "convolve", faulty)
    row = measure(n=12, layers=5)
    (wrong,) = (reason for reason in row.reasons if reason.code == "WRONG_ANSWER")
    assert "layer 2 does not convolve" in wrong.sentence


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kernel", [1, 2, 5])
def test_corners_of_a_right_chain_agree_through_all_layers(dtype, kernel):
    row = measure(n=48, dtype=dtype, kernel=kernel, layers=9, batch=2)
    assert "WRONG_ANSWER" not in codes(row)
    assert "all layers" in row.answer.compared


def test_overflow_is_invalid(monkeypatch):
    monkeypatch.setattr(mlx_conv._Layers, "_keep_size", lambda _: None)
    weights = mlx_conv._Layers._weights
    monkeypatch.setattr(mlx_conv._Layers, "_weights", lambda self: [w * 100 for w in weights(self)])
    row = measure(dtype="float16", layers=6)
    assert row.verdict == "INVALID"
    assert "NON_FINITE" in codes(row)


def test_zeros_are_suspect():
    row = measure(data="zeros")
    assert row.verdict == "SUSPECT"
    assert {"NON_RANDOM_DATA", "DEGENERATE_DATA"} <= codes(row)


def test_enqueue_counts_every_submission_and_says_so():
    row = measure(enqueue=3)
    assert row.sizes["work_ops"] == 3 * measure().sizes["work_ops"]
    assert any("3 submissions in flight" in note for note in row.notes)
    assert row.effective_bits > 18


@pytest.mark.parametrize(
    ("enqueue", "k", "lengths"), [(1, 7, [7]), (2, 6, [3, 3]), (2, 7, [3, 3, 1]), (2, 2, [2])]
)
def test_lengths_add_up_to_the_layers_asked_for(enqueue, k, lengths):
    chain = Chain.of(case(layers=3, enqueue=enqueue))
    assert mlx_conv._Steps(SimpleNamespace(chain=chain)).lengths(k) == lengths


def test_a_long_run_is_predicted_from_a_small_chain(monkeypatch):
    announced = []
    monkeypatch.setitem(mlx._PREDICTS, "cpu", 1e5)

    class Prediction(Listener):
        def once(self, case, expected_s):
            announced.append((case, expected_s))

    run = nnbt.run(
        "conv", "cpu", "float32", [8], params={"layers": 4, "channels": 8}, max_seconds=1e-6,
        warmup=0, listener=Prediction(),
    )  # fmt: skip
    assert run.results[0].stop == "one run"
    assert announced[0][0].params["layers"] == 4
    assert announced[0][1] > 0


def command(*args):
    return cli._run(["conv", *args])


def test_table_csv_and_json(tmp_path, capsys):
    paths = tmp_path / "conv.csv", tmp_path / "conv.json"
    code = command(
        *SMALL, "--control", "--csv", str(paths[0]), "--json", str(paths[1]), "--batch", "2",
        "--shared-weights", "--enqueue", "2", "--max-seconds", "0.2", "--no-pmu", "--no-fail",
    )  # fmt: skip
    out = capsys.readouterr().out
    assert code == 0
    assert "conv on cpu (mlx)" in out
    assert "exact GOPS" in out
    results = load(paths[1]).results
    assert [row.case.params["kernel"] for row in results] == [3, 1]
    for row in results:
        assert (row.status, row.runs) == ("OK", 5)
        params = row.case.params
        assert (params["weights"], params["batch"], params["enqueue"]) == ("shared", 2, 2)
        assert row.sizes["work_ops"] == 2 * 2 * 8 * 8 * 4 * 4 * params["kernel"] ** 2 * 3 * 2
    three, one = (row.sizes for row in results)
    assert three["exact_ops"] / three["work_ops"] == pytest.approx((22 / 24) ** 2)
    assert one["exact_ops"] == one["work_ops"]
    table = list(csv.DictReader(paths[0].read_text().splitlines()))
    assert [row["kernel"] for row in table] == ["3", "1"]
    for row in table:
        ratio = float(row["exact_gops"]) / float(row["gops"])
        assert ratio == pytest.approx(((22 / 24) ** 2, 1)[row["kernel"] == "1"], rel=1e-6)


@pytest.mark.parametrize(
    ("args", "rows"),
    [
        (("--dtype", "float32", "--dtype", "bfloat16"), 2), (("--dtype", "all"), 1),
        (("--sizes", "9"), 2), (("--data", "zeros"), 1), (("--engine", "mlx"), 1),
        (("--no-gpu",), 1), (("--kernel", "5"), 1), (("--weights", "shared"), 1),
        (("--no-checks",), 1), (("--tf32", "default"), 1), (("--warmup", "0"), 1),
        # other names of the same
        (("--variant", "fp16"), 1), (("--variant", "all"), 1), (("--size", "9"), 2),
        (("--fill", "zeros"), 1), (("--own-weights",), 1), (("--iterations", "6"), 1),
    ],
)  # fmt: skip
def test_every_option_runs(args, rows, capsys):
    assert command(*SMALL, "--max-seconds", "0.1", "--no-fail", *args) == 0
    out = capsys.readouterr().out
    names = ("float16", "float32", "bfloat16")
    assert sum(line.startswith(names) for line in out.splitlines()) == rows


def test_all_variants_say_what_is_left_out(capsys):
    assert command(*SMALL, "--variant", "all", "--no-fail") == 0
    err = capsys.readouterr().err
    for name in ("int8", "qdq", "w8a8"):
        assert f"left out: conv by mlx on cpu does not support {name}" in err


def test_an_invalid_row_ends_with_exit_code_1(monkeypatch, capsys):
    convolve = mlx_conv._Layers.convolve
    monkeypatch.setattr(
        mlx_conv._Layers, "convolve", lambda self, z, w: self.mx.roll(convolve(self, z, w), 1)
    )
    assert command(*SMALL) == 1
    assert command(*SMALL, "--no-fail") == 0
    assert "WRONG_ANSWER" in capsys.readouterr().out


REFUSALS = {
    ("--variant", "int8"): "--engine mpsgraph --device ane",
    ("--dtype", "qdq"): "--engine mpsgraph --device gpu or ane", ("--variant", "w8a8"): "w8a8",
    ("--variant", "fp17"): "--dtype 'fp17'", ("--dtype", "float64"): "float64",
    ("--dtype", "nix"): "--dtype 'nix'", ("--engine", "nix"): "--engine 'nix'",
    ("--device", "hybrid"): "--device",
    ("--data", "ones"): "normal zeros",
    ("--fill", "ones"): "--data 'ones'", ("--sizes", "0"): "--sizes 0",
    ("--size", "0"): "--sizes 0", ("--sizes", "x"): "'x'",
    ("--sizes", "9999999"): "--sizes", ("--batch", "0"): "--batch 0",
    ("--batch", "x"): "--batch 1", ("--channels", "0"): "--channels 0",
    ("--layers", "0"): "--layers 0",
    ("--kernel", "128"): "--kernel 128",
    ("--weights", "mine"): "own shared",
    ("--enqueue", "0"): "--enqueue 0", ("--runs", "0"): "--runs 0",
    ("--max-seconds", "0"): "--max-seconds 0",
    ("--tf32", "maybe"): "--tf32 'maybe'", ("--pmu",): "--pmu",
    ("--save-package", "x"): "--save-package", ("--load-package", "x"): "--load-package",
    ("--no-gpu", "--device", "gpu"): "--no-gpu",
    ("--sizes", "2000000", "--channels", "1"): "--sizes ",
    ("--sizes", "64", "--channels", "300000"): "--channels ",
    ("--sizes", "64", "--batch", "900000"): "--batch ",
    ("--sizes", "8", "--channels", "900", "--layers", "10000"): "--layers ",
    ("--csv", "."): "folder", ("extra",): "nnbt conv --help",
    ("--metric", "conv"): "No such option",
}  # fmt: skip


@pytest.mark.parametrize("args", REFUSALS, ids=" ".join)
def test_refusals_are_one_sentence_and_exit_code_2(args, capsys, monkeypatch):
    monkeypatch.setattr(_native, "conv_available", lambda: "MPSGraph is not here.")
    device = () if "--device" in args else ("--device", "cpu")
    assert command("--channels", "8", *device, *args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nnbt: ")
    assert err.count("\n") == 1
    assert REFUSALS[args] in err


@pytest.mark.parametrize("args", [(), ("--device", "ane"), ("--device", "gpu", "--variant", "qdq")])
def test_mpsgraph_is_refused_where_it_is_missing(args, capsys, monkeypatch):
    monkeypatch.setattr(_native, "conv_available", lambda: "MPSGraph is not here.")
    assert command("--engine", "mpsgraph", *args) == 2
    assert capsys.readouterr().err == "nnbt: MPSGraph is not here.\n"


def test_the_main_command_measures_conv_with_its_defaults():
    plan = make_plan(Options(metrics=("conv",), device="cpu"))
    assert [(c.n, c.dtype, dict(c.params)) for c in plan.cases] == [
        (256, "float32", {**DEFAULTS, "data": "normal"})
    ]


def test_unknown_weights_are_refused_from_python():
    with pytest.raises(Unsupported, match="Unknown weights 'mine': use one of own shared"):
        nnbt.run("conv", "cpu", "float32", [8], params={"weights": "mine"})


@dataclass
class FakeStep:
    """Stands for a compiled chain; counts its runs."""

    spec: object
    package: str | None
    runs: int = 0
    compile_ns: int = 5_000_000
    device_name: str = "Apple M4 Pro"
    ok: bool = True
    saved: list[str] = field(default_factory=list)

    def __call__(self):
        self.runs += 1

    def check(self):
        assert self.runs
        return SimpleNamespace(
            ok=self.ok, compared=7, relative_error=1e-3, zero_fraction=0.0, non_finite=0,
            detail="7 values with float64",
        )  # fmt: skip

    def save_package(self, path):
        self.saved.append(path)
        return "without its ANE bundle"


@pytest.fixture
def mpsgraph(monkeypatch, fake_helper):
    """A native part that makes FakeSteps (`steps`), and a helper process for the other chains."""
    made = SimpleNamespace(steps=[], ok=True, helper=fake_helper)

    def make_conv(spec, package=None):
        made.steps.append(FakeStep(spec, package, ok=made.ok))
        return made.steps[-1]

    monkeypatch.setattr(_native, "conv_available", lambda: None)
    monkeypatch.setattr(_native, "make_conv", make_conv)
    return made


QUICK = ("--sizes", "8", "--channels", "4", "--layers", "3", "--runs", "5", "--no-checks")


def apple(*args):
    return command(*QUICK, *args)


def here(made):
    """(variant, device) of the chains of this process, without those that dispatch nothing."""
    return [(s.spec.variant, s.spec.device) for s in made.steps if s.spec.layers == 3]


def there(made):
    """(variant, device) of the chains that the helper process measured."""
    asked = made.helper.requests(layers=3)
    return [(one["variant"], one["device"]) for one in asked if not one.get("pmu")]


def test_mpsgraph_runs_what_each_device_has(mpsgraph, capsys):
    assert apple("--no-fail") == 0
    out, err = capsys.readouterr()
    # Here also as what the time on the Neural Engine is compared with.
    assert here(mpsgraph) == [("fp16", "gpu"), ("fp16", "gpu")]
    assert set(there(mpsgraph)) == {
        ("qdq", "gpu"), ("w8a8", "gpu"),
        ("fp16", "ane"), ("int8", "ane"), ("qdq", "ane"), ("w8a8", "ane"),
    }  # fmt: skip
    assert "left out: conv by mpsgraph on gpu does not support int8" in err
    assert "conv on gpu (mpsgraph)" in out
    assert "conv on ane (mpsgraph)" in out
    assert "placement proven: the manifest says so; a run takes" in out


def test_a_refusal_keeps_its_capitals(mpsgraph, monkeypatch, capsys):
    def validate():
        raise ValueError("an INT8 chain on the ANE needs B >= 1")

    monkeypatch.setattr(
        "nnbt.engines.mpsgraph.conv._spec", lambda _: SimpleNamespace(validate=validate)
    )
    assert apple("--device", "ane", "--variant", "int8") == 2
    assert capsys.readouterr().err == "nnbt: An INT8 chain on the ANE needs B >= 1.\n"
    assert mpsgraph.helper.requests() == []


def test_int8_on_the_gpu_never_reaches_the_native_part(mpsgraph, capsys):
    assert apple("--device", "gpu", "--variant", "int8") == 2
    assert mpsgraph.steps == []
    assert mpsgraph.helper.requests() == []
    assert "--dtype float16, qdq or w8a8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verdict", "judged", "code"),
    [("not on ANE", "INVALID", "NOT_ON_ANE"), ("unproven", "SUSPECT", "PLACEMENT_UNPROVEN")],
)
def test_placement_decides_the_verdict(mpsgraph, tmp_path, verdict, judged, code):
    evidence = {"placement": verdict, "evidence": ["the manifest says so"]}
    mpsgraph.helper.rule(evidence, device="ane")
    path = tmp_path / "conv.json"
    status = apple("--device", "ane", "--variant", "fp16", "--json", str(path))
    (row,) = load(path).results
    assert status == (1 if judged == "INVALID" else 0)
    assert row.verdict == judged
    assert code in codes(row)
    assert row.details.placement.verdict == verdict
    said, compared = row.details.placement.evidence
    assert said == "the manifest says so"
    assert "ms on the GPU" in compared


def test_the_time_on_the_gpu_weighs_against_a_likely_placement():
    lines = ["one region"]
    weigh = _native.weigh_latency
    assert weigh("likely", lines, 1.0e6, 2.0e6)[0] == "likely"
    verdict, evidence = weigh("likely", lines, 1.00e6, 1.02e6)
    assert verdict == "unproven"
    assert evidence[:-1] == lines
    assert "1.02 ms on the GPU" in evidence[-1]
    assert weigh("proven", lines, 1.00e6, 1.02e6)[0] == "proven"
    assert weigh("not on ANE", lines, 1.0e6, 3.0e6)[0] == "not on ANE"
    assert weigh("likely", lines, 1.0e6, 0.0) == ("likely", lines)


@pytest.mark.parametrize("args", [("--variant", "fp16", "--no-gpu"), ("--variant", "int8")])
def test_no_gpu_and_int8_leave_the_comparison_out(mpsgraph, args, capsys):
    assert apple("--device", "ane", "--no-fail", *args) == 0
    assert mpsgraph.steps == []
    assert {one["device"] for one in mpsgraph.helper.requests()} == {"ane"}
    assert "on the GPU" not in capsys.readouterr().out


def test_a_comparison_that_fails_is_evidence_only(mpsgraph, capsys):
    mpsgraph.helper.rule("abort", device="gpu")
    assert apple("--device", "ane", "--variant", "qdq") == 0
    out = capsys.readouterr().out
    assert "aborted" in out


def test_a_wrong_native_answer_is_invalid(mpsgraph, tmp_path):
    mpsgraph.ok = False
    mpsgraph.helper.rule({"check": {"ok": False}}, device="gpu")
    path = tmp_path / "conv.json"
    args = [arg for arg in QUICK if arg != "--no-checks"]
    for variant in ("fp16", "w8a8"):
        assert command(*args, "--device", "gpu", "--variant", variant, "--json", str(path)) == 1
        (row,) = load(path).results
        assert row.verdict == "INVALID"
        assert "WRONG_ANSWER" in codes(row)
        assert row.details.relative_error == 1e-3


def test_numbers_reach_the_helper_process(mpsgraph):
    args = ("--batch", "2", "--kernel", "5", "--enqueue", "2", "--data", "zeros", "--no-fail")
    assert apple("--device", "gpu", "--variant", "w8a8", "--shared-weights", *args) == 0
    first = mpsgraph.helper.requests()[0]
    names = ("batch", "size", "channels", "layers", "kernel", "enqueue")
    assert [first[name] for name in names] == [2, 8, 4, 3, 5, 2]
    assert (first["variant"], first["device"], first["fill"]) == ("w8a8", "gpu", "zeros")
    assert first["shared_weights"]
    assert (first["runs"], first["warmup"]) == (5, 2)


@pytest.mark.parametrize("place", ["file", "file/below", "/dev/null/x"])
def test_a_package_folder_that_cannot_be_is_refused(mpsgraph, tmp_path, capsys, place):
    (tmp_path / "file").write_text("")
    one = ("--device", "ane", "--variant", "int8", "--save-package", str(tmp_path / place))
    assert apple(*one) == 2
    assert (
        str(tmp_path / "file" if place != "/dev/null/x" else "/dev/null") in capsys.readouterr().err
    )
    assert mpsgraph.helper.requests() == []


@pytest.mark.parametrize("option", ["--save-package", "--load-package"])
def test_an_empty_package_name_is_refused(mpsgraph, capsys, option):
    assert apple("--device", "ane", option, "") == 2
    assert f"use {option} packages" in capsys.readouterr().err
    assert mpsgraph.helper.requests() == []


@pytest.mark.parametrize(
    "text", ["", "5", "[]", "{}", '{"layers": 3}', "[" * 100_000, None, {"layers": "3"}]
)
def test_a_package_that_does_not_name_its_chain_is_refused(mpsgraph, tmp_path, capsys, text):
    spec = _native.ConvSpec(variant="int8", device="ane", size=8, channels=4, layers=3)
    if not isinstance(text, str):
        text = json.dumps({**json.loads(spec.to_json()), **(text or {"shared_weights": []})})
    (tmp_path / "nnbt_conv.json").write_text(text)
    assert apple("--device", "ane", "--variant", "int8", "--load-package", str(tmp_path)) == 2
    assert f"{tmp_path} has no readable nnbt_conv.json" in capsys.readouterr().err
    assert mpsgraph.helper.requests() == []


def test_packages_are_saved_and_loaded(mpsgraph, tmp_path, capsys):
    one = ("--device", "ane", "--variant", "int8", "--no-fail")
    asked = mpsgraph.helper.requests
    assert apple(*one, "--save-package", str(tmp_path / "new")) == 0
    path = tmp_path / "new" / "conv_int8_ane_k3.mpsgraphpackage"
    assert [one["save_package"] for one in asked() if "save_package" in one] == [str(path)]
    assert f"saved {path}; without its ANE bundle" in capsys.readouterr().out
    (path / "nnbt_conv.json").write_text(_native.ConvSpec(
        variant="int8", device="ane", size=8, channels=4, layers=3, shared_weights=False
    ).to_json())  # fmt: skip
    before = len(asked())
    assert apple(*one, "--save-package", str(tmp_path / "new")) == 2
    assert capsys.readouterr().err.startswith(f"nnbt: {path} exists already: ")
    assert len(asked()) == before
    assert apple(*one, "--load-package", str(path)) == 0
    assert asked()[before]["package"] == str(path)
    assert asked(pmu=1)[-1]["package"] == str(path)
    assert apple(*one, "--load-package", str(path), "--layers", "9", "--shared-weights") == 2
    assert capsys.readouterr().err.endswith(": use --layers 3 --weights own.\n")
    assert apple(*one, "--load-package", str(tmp_path)) == 2
    assert "has no readable nnbt_conv.json" in capsys.readouterr().err
    assert apple(*one, "--load-package", str(tmp_path / "none")) == 2
    assert f"{tmp_path / 'none'}: " in capsys.readouterr().err
    before = len(asked())
    assert apple("--load-package", str(path), "--no-fail") == 0
    assert "left out: " in capsys.readouterr().err
    assert {one["variant"] for one in asked()[before:]} == {"int8"}


def test_a_package_of_the_gpu_is_saved_here(mpsgraph, tmp_path, capsys):
    one = ("--device", "gpu", "--variant", "fp16", "--no-fail")
    assert apple(*one, "--save-package", str(tmp_path / "new")) == 0
    path = tmp_path / "new" / "conv_fp16_gpu_k3.mpsgraphpackage"
    assert mpsgraph.steps[0].saved == [str(path)]
    assert f"saved {path}; without its ANE bundle" in capsys.readouterr().out


def test_the_nearest_published_row_stands_beside_a_result():
    row = reference.beside(case(channels=250, layers=49), "NVIDIA H200")
    assert "gpu fp16" in row.note
    assert row.rate > 1e12
    assert row.latency_s > 0


def test_the_same_chip_comes_first():
    for model in ("Apple M1", "Apple M4 Pro"):
        assert reference.beside(case(device="ane"), model).model.endswith(
            model.removeprefix("Apple ")
        )


@pytest.mark.parametrize("changes", [{"dtype": "w8a8"}, {"dtype": "bfloat16"}, {"device": "cpu"}])
def test_no_row_is_made_up(changes):
    assert reference.beside(case(**changes), "Apple M4 Pro") is None


def test_device_auto_means_all_of_mpsgraph(mpsgraph):
    del mpsgraph
    options = conv_options({"counters": False})
    assert (options.engines, options.device, options.counters) == (("mpsgraph",), "all", False)
    plan = make_plan(options)
    assert [(c.device, c.dtype) for c in plan.cases] == [
        ("gpu", "float16"), ("gpu", "qdq"), ("gpu", "w8a8"),
        ("ane", "float16"), ("ane", "int8"), ("ane", "qdq"), ("ane", "w8a8"),
    ]  # fmt: skip
