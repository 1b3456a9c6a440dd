"""Builder of metric `conv`, engine `mpsgraph`: chains that the native part compiles and runs.

Everything that computes is in `nnbt._native`; `missing` says where it can't run.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnbt import _native
from nnbt.conv import GPU_DTYPES, VARIANTS, Chain
from nnbt.workload import Answer, DataShare, Workload

if TYPE_CHECKING:
    from nnbt._native import ConvCheck, ConvSpec, ConvStep
    from nnbt.bench import Bench
    from nnbt.plan import Options
    from nnbt.result import Case

_VARIANT_OF = {token: name for name, token in VARIANTS.items()}
_SPEC_FILE = "nnbt_conv.json"
"""In a saved package: the numbers of its chain."""
_TYPED = (
    "variant",
    "device",
    "batch",
    "size",
    "channels",
    "layers",
    "kernel",
    "fill",
    "shared_weights",
)
_MOST_LAYERS = 64
_PLACEMENT_RUNS = 5
_TINY_N = 8
_TINY = {"channels": 8, "layers": 1, "batch": 1, "enqueue": 1}
"""A chain that takes as long as it takes to dispatch one."""


def missing() -> str | None:
    """None where convolutions run through MPSGraph, else the sentence that says why not."""
    return _native.conv_available()


def refusal(case: Case, options: Options) -> str | None:
    """Why this case can't be run, before anything is compiled, else None."""
    reason = missing()
    if reason is not None:
        return reason
    if options.load_package is not None and not Path(options.load_package).is_dir():
        return f"There is no package {options.load_package}: name a folder of --save-package."
    other = None if options.load_package is None else _other_chain(case, options.load_package)
    if other is not None:
        return other
    target = _package_path(case, options)
    if target is not None and target.exists():
        return f"{target} is there already: remove it, or name another folder."
    try:
        _spec(case).validate()
    except ValueError as error:
        return f"{str(error).capitalize()}."
    return None


def _other_chain(case: Case, package: str) -> str | None:
    """What to type for the chain that a package was saved with, if that is another one."""
    try:
        saved = json.loads((Path(package) / _SPEC_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"{package} has no readable {_SPEC_FILE}: name a folder of --save-package."
    wanted = json.loads(_spec(case).to_json())
    options = [
        {True: "--shared-weights", False: "--own-weights"}[bool(saved[name])]
        if name == "shared_weights"
        else f"--{name} {saved[name]}"
        for name in _TYPED
        if name in saved and saved[name] != wanted[name]
    ]
    if options:
        return f"{package} holds another chain: type {' '.join(options)}."
    return None


def _package_path(case: Case, options: Options | None) -> Path | None:
    if options is None or options.save_package is None:
        return None
    name = f"conv_{_VARIANT_OF[case.dtype]}_{case.device}_k{case.params['kernel']}"
    return Path(options.save_package) / f"{name}.mpsgraphpackage"


def _spec(case: Case) -> ConvSpec:
    chain = Chain.of(case)
    return _native.ConvSpec(
        variant=_VARIANT_OF[case.dtype],
        device=case.device,
        batch=chain.batch,
        size=chain.n,
        channels=chain.channels,
        layers=chain.layers,
        kernel=chain.kernel,
        fill=str(case.params["data"]),
        shared_weights=chain.shared,
        enqueue=chain.enqueue,
    )


def _changed(case: Case, **numbers: int) -> Case:
    return replace(case, params={**case.params, **numbers})


@dataclass
class _Compiled:
    """The compiled chain of a case, and others that differ in their number of layers."""

    bench: Bench
    whole: ConvStep
    found: ConvCheck | None = None

    def step(self, units: int) -> Any:
        """The native Step of so many layers."""
        chain = Chain.of(self.bench.case)
        if units == chain.layers * chain.enqueue:
            return self.whole
        return _native.make_conv(_spec(_changed(self.bench.case, layers=units)))

    def check(self) -> Answer:
        """The native check of the latest run: the whole chain against float64 where affordable."""
        found = self.found = self.whole.check()
        return Answer(
            compared=found.detail,
            exact=found.ok,
            outputs=DataShare(
                finite=0.0 if found.non_finite else 1.0,
                zero=found.zero_fraction,
                denormal=0.0,
                rms=math.nan,
                all_finite=not found.non_finite,
            ),
        )

    def after(self) -> tuple[tuple[str, ...], dict[str, object]]:
        """How long compiling took, and where an ANE chain ran, with the evidence."""
        details: dict[str, object] = {
            "compile_s": self.whole.compile_ns * 1e-9,
            "device_name": self.whole.device_name,
        }
        notes: tuple[str, ...] = ()
        if self.found is not None and self.found.compared:
            details["relative_error"] = self.found.relative_error
        if self.bench.case.device == "ane":
            verdict, evidence = self._placement()
            details["placement"] = {"verdict": verdict, "evidence": evidence}
            notes = (f"placement {verdict}: {'; '.join(evidence)}",)
        return notes, details

    def _placement(self) -> tuple[str, list[str]]:
        case, options = self.bench.case, self.bench.options
        on_gpu = None
        # int8 has no counterpart: on the GPU, MPSGraph would abort the process.
        if case.dtype in GPU_DTYPES and "gpu" not in (options.without if options else ()):
            on_gpu = self._median_ns(_native.make_conv(_spec(replace(case, device="gpu"))))
        return _native.judge_placement(self.whole.placement(), self._median_ns(self.whole), on_gpu)

    def _median_ns(self, step: ConvStep) -> float:
        samples = self.bench.measure(step, warmup=1, runs=_PLACEMENT_RUNS)
        return _native.median(samples.samples_ns)


def _save(step: ConvStep, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    problem = step.save_package(str(path))
    return f"saved {path}" + (f"; {problem}" if problem else "")


def conv(bench: Bench) -> Workload:
    """A chain compiled by MPSGraph; a unit of work is one layer, a slope compiles other chains."""
    case, options = bench.case, bench.options
    chain = Chain.of(case)
    package = options.load_package if options is not None else None
    whole = _native.make_conv(_spec(case), package)
    notes = [f"{'loaded' if package else 'compiled'} in {whole.compile_ns * 1e-9:.2f} s"]
    path = _package_path(case, options)
    if path is not None:
        notes.append(_save(whole, path))
    no_slope = ""
    if package is not None:
        no_slope = "a saved package has its number of layers"
    elif chain.enqueue > 1:
        no_slope = "submissions in flight overlap"
    compiled = _Compiled(bench, whole)
    return Workload(
        step=compiled.step,
        units=chain.layers * chain.enqueue,
        unit_work=chain.layer_ops,
        largest_k=_MOST_LAYERS,
        check=compiled.check,
        unit_name="layer",
        sizes=bench.sizes,
        no_slope=no_slope,
        notes=tuple(notes),
        after=compiled.after,
        floor=_native.make_conv(_spec(_changed(replace(case, n=_TINY_N), **_TINY))),
    )
