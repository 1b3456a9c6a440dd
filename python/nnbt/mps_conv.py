"""Builder of metric `conv`, engine `mpsgraph`: chains that the native part compiles and runs.

Everything that computes is in `nnbt._native` (ConvSpec, make_conv, judge_placement); where it was
built without these, `missing` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt._native import Unsupported
from nnbt.conv import VARIANTS, Chain
from nnbt.workload import Answer, DataShare, Workload

if TYPE_CHECKING:
    from nnbt.bench import Bench
    from nnbt.result import Case

_VARIANT_OF = {token: name for name, token in VARIANTS.items()}
_MOST_LAYERS = 64
_PLACEMENT_RUNS = 5
_TINY_N = 8
_TINY = {"channels": 8, "layers": 1, "batch": 1, "enqueue": 1}
"""A chain that takes as long as it takes to dispatch one."""


def missing() -> str | None:
    """None where convolutions run through MPSGraph, else the sentence that says why not."""
    available = getattr(_native, "conv_available", None)
    if available is None:
        return "This build of nnbt has no MPSGraph engine: type --engine mlx."
    reason: str | None = available()
    return reason


def _make(case: Case, package: str | None = None) -> Any:
    """A compiled native Step of the case."""
    chain = Chain.of(case)
    # getattr: the stubs of the extension have no convolutions where it is built without them.
    spec = getattr(_native, "ConvSpec")(  # noqa: B009
        variant=_VARIANT_OF[case.dtype],
        device=case.device,
        batch=chain.batch,
        size=chain.n,
        channels=chain.channels,
        layers=chain.layers,
        kernel=chain.kernel,
        fill=case.params["data"],
        shared_weights=chain.shared,
        enqueue=chain.enqueue,
    )
    spec.validate()
    return getattr(_native, "make_conv")(spec, package)  # noqa: B009


def _changed(case: Case, **numbers: int) -> Case:
    return replace(case, params={**case.params, **numbers})


@dataclass
class _Compiled:
    """Compiled chains of one case by number of layers."""

    bench: Bench
    whole: Any
    package: str | None

    def step(self, units: int) -> Any:
        """The native Step of so many layers (whole submissions where several are in flight)."""
        chain = Chain.of(self.bench.case)
        if units == chain.layers * chain.enqueue:
            return self.whole
        return _make(_changed(self.bench.case, layers=units))

    def check(self) -> Answer:
        """The native check of the latest run against float64."""
        found = self.whole.check()
        self.relative_error = float(found.relative_error)
        return Answer(
            compared=found.detail,
            exact=bool(found.ok),
            outputs=DataShare(
                finite=0.0 if found.non_finite else 1.0,
                zero=float(found.zero_fraction),
                denormal=0.0,
                rms=math.nan,
                all_finite=not found.non_finite,
            ),
        )

    def _median_ns(self, step: Any) -> float:
        samples = self.bench.measure(step, warmup=1, runs=_PLACEMENT_RUNS)
        return float(_native.median(samples.samples_ns))

    def after(self) -> tuple[tuple[str, ...], dict[str, object]]:
        """Where the chain ran, with the evidence, and the package if one was asked for."""
        case, options = self.bench.case, self.bench.options
        notes: list[str] = []
        details: dict[str, object] = {"compile_s": self.whole.compile_ns * 1e-9}
        if case.device == "ane":
            placement, evidence = self._placement()
            details["placement"] = {"verdict": placement, "evidence": evidence}
            notes.append(f"placement {placement}: {' '.join(evidence)}")
        if options is not None and options.save_package is not None:
            folder = Path(options.save_package)
            name = f"conv_{_VARIANT_OF[case.dtype]}_{case.device}_k{case.params['kernel']}"
            path = folder / f"{name}.mpsgraphpackage"
            folder.mkdir(parents=True, exist_ok=True)
            problem = self.whole.save_package(str(path))
            details["package"] = str(path)
            notes.append(f"saved {path}" + (f"; {problem}" if problem else ""))
        return tuple(notes), details

    def _placement(self) -> tuple[str, list[str]]:
        case, options = self.bench.case, self.bench.options
        on_gpu = None
        # int8 has no GPU counterpart: MPSGraph would abort the process.
        if case.dtype != "int8" and "gpu" not in (options.without if options else ()):
            on_gpu = self._median_ns(_make(replace(case, device="gpu")))
        verdict, evidence = getattr(_native, "judge_placement")(  # noqa: B009
            self.whole.placement(), self._median_ns(self.whole), on_gpu
        )
        return str(verdict), list(evidence)


def conv(bench: Bench) -> Workload:
    """A chain compiled by MPSGraph; a unit of work is one layer, a slope compiles other chains."""
    case = bench.case
    chain = Chain.of(case)
    package = bench.options.load_package if bench.options is not None else None
    if package is not None and not Path(package).is_dir():
        raise Unsupported(f"There is no package {package}: name a folder that --save-package made.")
    compiled = _Compiled(bench, _make(case, package), package)
    no_slope = ""
    if package is not None:
        no_slope = "a saved package has its number of layers"
    elif chain.enqueue > 1:
        no_slope = "submissions in flight overlap"
    return Workload(
        step=compiled.step,
        units=chain.layers * chain.enqueue,
        unit_work=chain.layer_ops,
        largest_k=_MOST_LAYERS,
        check=compiled.check,
        unit_name="layer",
        sizes=bench.sizes,
        no_slope=no_slope,
        notes=(f"compiled in {compiled.whole.compile_ns * 1e-9:.2f} s",),
        after=compiled.after,
        floor=_make(_changed(replace(case, n=_TINY_N), **_TINY)),
    )
