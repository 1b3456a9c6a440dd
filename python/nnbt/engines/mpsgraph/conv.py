"""Builder of metric `conv`, engine `mpsgraph`: chains that the native part compiles and runs.

The computing is in `nnbt._native`; `missing` says why it cannot run here. Chains that can abort
MPSGraph's process are compiled and run by the helper process, see `helper_step`.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nnbt import _native
from nnbt._native import ConvSpec, ConvStep
from nnbt.engines.mpsgraph import counters
from nnbt.engines.mpsgraph.helper import HelperError
from nnbt.engines.mpsgraph.helper_step import HelperStep
from nnbt.engines.mpsgraph.power import power_of
from nnbt.spec.case import Case
from nnbt.spec.cell import Request
from nnbt.spec.conv import GPU_DTYPES, VARIANTS, Chain
from nnbt.spec.details import Details, Placement
from nnbt.spec.options import Options, spelled
from nnbt.spec.workload import After, Answer, DataShare, Workload

_VARIANT_OF = {token: name for name, token in VARIANTS.items()}
_SPEC_FILE = "nnbt_conv.json"  # in a saved package: the numbers of its chain
_OPTIONS = {
    "variant": "dtype", "device": "device", "batch": "batch", "size": "sizes",
    "channels": "channels", "layers": "layers", "kernel": "kernel", "fill": "data",
    "shared_weights": "weights",
}  # fmt: skip
"""The option that sets each number of a saved chain."""
_MOST_LAYERS = 64
_PLACEMENT_RUNS = 5
_CHECKED = ("ok", "compared", "relative_error", "zero_fraction", "non_finite", "detail")
_TINY_N = 8
_TINY = {"channels": 8, "layers": 1, "batch": 1, "enqueue": 1}
"""A chain whose time is that of its dispatch."""


def missing() -> str | None:
    """Why convolutions cannot run through MPSGraph here, or None."""
    return _native.conv_available()


def refusal(case: Case, options: Options) -> str | None:
    """Why this case cannot be run, or None; compiles nothing."""
    reason = missing()
    if reason is not None:
        return reason
    if options.load_package is not None and not Path(options.load_package).is_dir():
        return f"There is no package {options.load_package}: use one that --save-package wrote."
    other = None if options.load_package is None else _other_chain(case, options.load_package)
    if other is not None:
        return other
    try:
        _spec(case).validate()
    except ValueError as error:
        sentence = str(error)
        return f"{sentence[:1].upper()}{sentence[1:]}."
    target = _package_path(case, options)
    return None if target is None else _not_savable(target)


def _not_savable(target: Path) -> str | None:
    """Why no package can be saved there, or None; creates its folder."""
    if target.exists():
        return f"{target} exists already: remove it, or use another folder."
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{target.parent} cannot be created ({error.strerror}): use another folder."
    if not os.access(target.parent, os.W_OK):
        return f"{target.parent} is not writable: use another folder."
    return None


def _other_chain(case: Case, package: str) -> str | None:
    """Why a package does not hold the chain of this case, or None."""
    try:
        saved = json.loads((Path(package) / _SPEC_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        saved = None
    wanted = json.loads(_spec(case).to_json())
    kinds = {name: type(wanted[name]) for name in _OPTIONS}
    if not isinstance(saved, dict) or {name: type(saved.get(name)) for name in _OPTIONS} != kinds:
        return f"{package} has no readable {_SPEC_FILE}: use a package that --save-package wrote."
    options = [_option(name, saved[name]) for name in _OPTIONS if saved[name] != wanted[name]]
    return f"{package} holds another chain: use {' '.join(options)}." if options else None


def _option(name: str, value: Any) -> str:
    """The option that gives a chain this number."""
    if name == "shared_weights":
        value = "shared" if value else "own"
    return spelled(_OPTIONS[name], VARIANTS.get(value, value))


def _package_path(case: Case, options: Options) -> Path | None:
    if options.save_package is None:
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


def risky(case: Case) -> bool:
    """Whether MPSGraph can abort its process: all but float16 on the GPU runs in the helper."""
    return case.device != "gpu" or case.dtype != "float16"


def _in_helper(case: Case, **keys: object) -> HelperStep:
    spec = json.loads(_spec(case).to_json())
    chain = Chain.of(case)
    ops = float(chain.layer_ops * chain.layers * chain.enqueue)
    return HelperStep(spec, ops, {name: value for name, value in keys.items() if value is not None})


def _step(case: Case) -> ConvStep | HelperStep:
    """The Step of the chain of a case, compiled in this process or in the helper."""
    return _in_helper(case) if risky(case) else _native.make_conv(_spec(case))


@dataclass
class _Compiled:
    """The compiled chain of a case, and others that differ in their number of layers."""

    request: Request
    whole: Any
    found: Any = None

    def step(self, units: int) -> Any:
        """The Step of this many layers."""
        chain = Chain.of(self.request.case)
        if units == chain.layers * chain.enqueue:
            return self.whole
        return _step(_changed(self.request.case, layers=units))

    def check(self) -> Answer:
        """The native check of the latest run: the whole chain against float64 if affordable."""
        found = self.found = self._checked()
        return Answer(
            compared=found.detail,
            exact=found.ok,
            outputs=DataShare(
                finite=0.0 if found.non_finite else 1.0,
                zero=found.zero_fraction,
                denormal=0.0,
                rms=None,
                all_finite=not found.non_finite,
            ),
        )

    def _checked(self) -> Any:
        """The ConvCheck of the latest run, or the same from the helper's document."""
        if not isinstance(self.whole, HelperStep):
            return self.whole.check()
        found = self.whole.document.get("check")
        if not isinstance(found, dict) or not set(_CHECKED) <= set(found):
            raise HelperError("The helper's document has no check of the result.")
        return SimpleNamespace(**found)

    def after(self) -> After:
        """Compile time; of the Neural Engine also placement, counters and energy."""
        case, notes = self.request.case, list[str]()
        if isinstance(self.whole, HelperStep):
            details = self._helper_details(notes)
        else:
            details = Details(
                compile_s=self.whole.compile_ns * 1e-9, device_name=self.whole.device_name
            )
        if self.found is not None and self.found.compared:
            details = replace(details, relative_error=self.found.relative_error)
        if case.device == "ane":
            verdict, evidence = self._placement()
            details = replace(details, placement=Placement(verdict, tuple(evidence)))
            notes.append(f"placement {verdict}: {'; '.join(evidence)}")
            if self.request.options.counters:
                package = self.whole.more.get("package")
                found = counters.read(case, _spec(case), package)
                details = replace(details, counters=found)
                notes += counters.notes_of(found)
        return After(tuple(notes), details)

    def _helper_details(self, notes: list[str]) -> Details:
        """What the helper's document says besides the times; adds to the notes."""
        document, more = self.whole.document, self.whole.more
        compile_s = document.get("compile_ns", 0) * 1e-9
        details = Details(compile_s=compile_s, device_name=str(document.get("device_name", "")))
        notes.append(f"{'loaded' if 'package' in more else 'compiled'} in {compile_s:.2f} s")
        if "save_package" in more:
            notes.append(_saved(str(more["save_package"]), str(document.get("package_note", ""))))
        power = document.get("power")
        if isinstance(power, dict):
            mean_s = document.get("window_ns", 0) * 1e-9 / len(document["samples_ns"])
            details = replace(details, power=power_of(power, mean_s))
        return details

    def _placement(self) -> tuple[str, list[str]]:
        case, options = self.request.case, self.request.options
        document = self.whole.document
        verdict = str(document.get("placement", "unproven"))
        evidence = [str(line) for line in document.get("evidence", ())]
        # int8 has no counterpart: on the GPU, MPSGraph would abort the process.
        if case.dtype not in GPU_DTYPES or "gpu" in options.without:
            return verdict, evidence
        try:
            on_gpu_ns = self._median_ns(_step(replace(case, device="gpu")))
        except (_native.Unsupported, HelperError) as error:
            return verdict, [*evidence, f"the same chain has no time on the GPU: {error}"]
        own_ns = _native.median(document["samples_ns"])
        return _native.weigh_latency(verdict, evidence, own_ns, on_gpu_ns)

    def _median_ns(self, step: Any) -> float:
        samples = self.request.measure(step, warmup=1, runs=_PLACEMENT_RUNS)
        return _native.median(samples.samples_ns)


def _saved(path: str, problem: str) -> str:
    return f"saved {path}" + (f"; {problem}" if problem else "")


def conv(request: Request) -> Workload:
    """A chain compiled by MPSGraph. A unit of work is one layer; a slope compiles more chains."""
    case, options = request.case, request.options
    chain = Chain.of(case)
    package = options.load_package
    target = _package_path(case, options)
    notes: list[str] = []
    whole: Any
    if risky(case):
        whole = _in_helper(case, package=package, save_package=target and str(target))
        if case.device == "ane" and options.counters:
            whole.optional = {"power": 1}
    else:
        whole = _native.make_conv(_spec(case), package)
        notes.append(f"{'loaded' if package else 'compiled'} in {whole.compile_ns * 1e-9:.2f} s")
        if target is not None:
            notes.append(_saved(str(target), whole.save_package(str(target))))
    no_slope = ""
    if package is not None:
        no_slope = "a saved package has a fixed number of layers"
    elif chain.enqueue > 1:
        no_slope = "submissions in flight overlap"
    compiled = _Compiled(request, whole)
    return Workload(
        step=compiled.step,
        units=chain.layers * chain.enqueue,
        unit_work=chain.layer_ops,
        largest_k=_MOST_LAYERS,
        check=compiled.check,
        unit_name="layer",
        sizes=request.sizes,
        no_slope=no_slope,
        notes=tuple(notes),
        after=compiled.after,
        floor=_step(_changed(replace(case, n=_TINY_N), **_TINY)),
    )
