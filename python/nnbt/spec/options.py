"""OPTIONS: the one table of options, and Options, what a run is asked to do.

A row gives the flag of the commands, the keyword of nnbt.run, the values it may have, and its line
in --help and in the documentation. A new option is a new row: a field of Options, or an entry of
_PARAMS (only for one metric) or _COMMAND_ONLY.
"""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from nnbt.spec.errors import Refusal

DATA = {
    "normal": "normal distribution, full mantissa; integers uniform over their whole range",
    "uniform": "uniform in (-1, 1); integers uniform over their whole range",
    "zeros": "all zero: less power, higher clocks, and zero-skipping hardware looks faster",
    "ones": "all one",
    "sparse50": "normal, with a random half of the elements zero",
    "nan": "all NaN, as after an overflow",
}
RANDOM_DATA = ("normal", "uniform")
TF32_MODES = ("default", "on", "off")

Kind = Literal["int", "seconds", "name", "path", "flag"]
Group = Literal["What to measure", "Convolutions", "How long", "Output"]


_KINDS: dict[Kind, tuple[str, Callable[[Any], Any], Callable[[str], Any]]] = {
    "int": ("a whole number", operator.index, int),
    "seconds": ("a number", lambda value: float(+value), float),
    "name": ("a name", str.__str__, str),
    "path": ("a path", lambda value: str.__str__(os.fspath(value)), str),
    "flag": ("True or False", lambda value: bool((False, True).index(value)), bool),
}
"""What each kind is called, and its conversion from a Python value and from text."""


@dataclass(frozen=True)
class Alias:
    """Another flag: it takes the option's values, or stands for one `value`."""

    flag: str
    value: str = ""
    deprecated: bool = False


@dataclass(frozen=True)
class Option:
    """One row of OPTIONS.

    `attribute` is the field of Options; rows without one are parameters of the metrics named in
    `metrics` (kept in Options.params) or belong to the commands alone. With `several`, Python
    code may give a list. A flag stands for the opposite of its default. `low` is excluded for
    seconds. `differs` replaces attributes in some commands. In `help`, {choices} are the choices,
    and backticks are for the documentation.
    """

    name: str
    kind: Kind
    default: Any
    help: str
    commands: tuple[str, ...] = ("run", "conv", "ladder")
    group: Group = "What to measure"
    several: bool = False
    choices: tuple[str, ...] = ()
    low: float = 1
    high: float = 2**20
    example: Any = None
    default_text: str = ""
    metavar: str = ""
    flag: str = ""
    aliases: tuple[Alias, ...] = ()
    metrics: tuple[str, ...] = ()
    attribute: str = ""
    differs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of the command line; of two, the first says yes and the second no."""
        negative = "no-" if self.kind == "flag" and self.default else ""
        flag = self.flag or f"--{negative}{self.name.replace('_', '-')}"
        return tuple(flag.split("/"))

    @property
    def shown_default(self) -> str:
        """The default in words; empty where not giving the option is the default."""
        if self.default_text or self.default is None or self.kind == "flag":
            return self.default_text
        values = self.default if isinstance(self.default, tuple) else (self.default,)
        return " ".join(f"{value:g}" if self.kind == "seconds" else str(value) for value in values)

    @property
    def repeatable(self) -> bool:
        """Whether the command line takes several values."""
        return self.several and not self.metrics

    def on(self, command: str) -> Option:
        """The row as this command has it."""
        return replace(self, **self.differs.get(command, {}))

    def described(self) -> str:
        """`help` with its names."""
        text = self.help.replace("{choices}", _listed([f"`{name}`" for name in self.choices]))
        return f"{text} Repeatable." if self.repeatable and self.kind == "name" else text

    def parse(self, text: str) -> Any:
        """One value from the command line. Raises Refusal."""
        return self._converted(text, _KINDS[self.kind][2])

    def convert(self, value: Any) -> Any:
        """A value from Python code: one, or several in a list. Raises Refusal."""
        if value is None and self.default is None:
            return None
        convert = _KINDS[self.kind][1]
        if not self.several:
            return self._converted(value, convert)
        items = (value,)
        if not isinstance(value, str | bytes):
            with contextlib.suppress(TypeError):
                items = tuple(value)
        return tuple(self._converted(item, convert) for item in items)

    def _converted(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if self.kind == "flag" or not isinstance(value, bool):
                return convert(value)
        raise self._refusal(f"{value!r} is not {_KINDS[self.kind][0]}")

    def _refusal(self, problem: str) -> Refusal:
        example = self.default if self.example is None else self.example
        return Refusal(f"{spelled(self.name)} {problem}", f"use {spelled(self.name, example)}")

    def check(self, value: Any) -> None:
        """Raises Refusal for values that the option cannot have."""
        if value is None or self.kind == "flag":
            return
        if value in ((), ""):
            raise self._refusal("is empty")
        for item in value if isinstance(value, tuple) else (value,):
            if self.choices:
                one_of(self.name, item, self.choices)
            if self.kind in ("int", "seconds"):
                self._check_range(self._converted(item, _KINDS[self.kind][1]))

    def _check_range(self, number: float) -> None:
        above = self.kind == "seconds"  # its lower bound is excluded
        if self.low <= number <= self.high and not (above and number == self.low):
            return
        bounds = f"more than {self.low} and at most" if above else f"{self.low} to"
        shown = f"{number:g}" if above else number
        raise Refusal(f"{spelled(self.name)} {shown} is out of range", f"use {bounds} {self.high}")


def _listed(names: Iterable[str]) -> str:
    """a, b or c."""
    *rest, last = list(names) or [""]
    return f"{', '.join(rest)} or {last}" if rest else last


def _row(kind: Kind, default: Any, text: str, **more: Any) -> Any:
    """A field of Options with its row, whose name is that of the field if none is given.

    `conv` and `ladder` are what differs in these commands.
    """
    more["differs"] = {name: more.pop(name) for name in ("conv", "ladder") if name in more}
    row = Option(more.pop("name", ""), kind, default, text, **more)
    return field(default=default, metadata={"row": row})


# A table: a row is a few lines, not a line per attribute.
# fmt: off
@dataclass(frozen=True)
class Options:
    """What a run is asked to do; the row of each field says what it means.

    `params` holds values of the rows that belong to one metric, by name. With `lenient`, cases
    that cannot be run are left out with a note, as long as one is left.
    """

    metrics: tuple[str, ...] = _row(
        "name", ("bandwidth",), "`bandwidth`, `flops`, `flops_graph` or `conv`.",
        name="metric", several=True, commands=("run", "ladder"),
        ladder={"several": False, "default": "flops", "help": "`flops` or `bandwidth`."})
    device: str = _row(
        "name", "auto", "`auto`, `cpu`, `gpu`, `ane` (`conv` only) or `hybrid` (`bandwidth` only: "
        "CPU and GPU at the same time).",
        conv={"help": "`cpu`, `gpu`, `ane`, `all`, or `auto`: every device of `mpsgraph`, the best "
                      "one of `mlx`."},
        ladder={"help": "`auto`, `cpu` or `gpu`."})
    engines: tuple[str, ...] = _row(
        "name", ("mlx",), "`mlx`, `mlx-compiled`, `native` (CPU), `kernel` (GPU), `library` or "
        "`mpsgraph` (Apple).",
        name="engine", several=True, commands=("run", "conv"),
        conv={"default": ("auto",),
              "help": "`mlx`, `mpsgraph`, or `auto`: `mpsgraph` where it is available."})
    sizes: tuple[int, ...] | None = _row(
        "int", None, "Sizes of the n x n matrices or images, separated by spaces.",
        several=True, high=10**7, metavar="N ...", example=(1024, 2048),
        default_text="1024 2048 4096", aliases=(Alias("--size"),),
        conv={"help": "Heights and widths of the images.", "default_text": "256"},
        ladder={"help": "Sizes of products and copies, of which the best counts.",
                "default_text": "one by device"})
    ladder_sizes: bool = _row(
        "flag", False, "Use sizes from the first cache to 4 times the last (`bandwidth` by engine "
        "`native`).", commands=("run",))
    dtypes: tuple[str, ...] = _row(
        "name", ("float32",), "A type of MLX, such as `float32`, `bfloat16`, `int8` or "
        "`complex64`, or a quantised one: `q2` `q3` `q4` `q5` `q6` `q8` `mxfp4` `mxfp8` `nvfp4`.",
        name="dtype", several=True, aliases=(Alias("--variant"),),
        conv={"default": None, "default_text": "`float16` with `mlx`, `all` with `mpsgraph`",
              "help": "`float16`, `bfloat16` or `float32` with `mlx`; `float16`, `int8`, `qdq` or "
                      "`w8a8` with `mpsgraph`; `all` is every type of the engine."},
        ladder={"several": False, "default": "float32",
                "help": "Element type; `int8` and `float8_e4m3` end in MLX's `q8` and `mxfp8`."})
    op: str | None = _row(
        "name", None, "Operation of `bandwidth`: `copy` or `add`; `native` and `kernel` have more.",
        commands=("run",), example="copy",
        default_text="`copy`, on CUDA `add`; all operations of `native` and `kernel`")
    data: tuple[str, ...] = _row(
        "name", ("normal",), "What the inputs contain: {choices}.",
        several=True, commands=("run", "conv"), choices=tuple(DATA), aliases=(Alias("--fill"),),
        conv={"choices": ("normal", "zeros")})
    tf32: str = _row(
        "name", "default", "TF32 for float32 products on GPUs: {choices} (`default`: MLX's "
        "choice).", choices=TF32_MODES, metavar="MODE")
    graph_steps: int = _row(
        "int", 4, "Products in one evaluation of `flops_graph`.", commands=("run",), high=100_000)
    warmup: int = _row(
        "int", 2, "Minimum number of warm-up runs.", group="How long", low=0, high=10**6)
    runs: int | None = _row(
        "int", None, "Exactly N timed runs.", group="How long", high=10**7, example=8,
        default_text="until the median is known to 1 %, at least 5",
        aliases=(Alias("--iterations"),))
    max_seconds: float = _row(
        "seconds", 3.0, "Longest time per case; ignored with `--runs`.",
        group="How long", low=0, high=86400,
        ladder={"default": 1.0,
                "help": "Longest time per case; a rung is the best of up to a dozen cases."})
    cpu_workers: int = _row(
        "int", 0, "CPUs to use (0: all).", commands=("run", "ladder"), low=0, high=1024,
        aliases=(Alias("--cpu-streams", deprecated=True),))
    thread_sweep: bool = _row(
        "flag", False, "Measure 1, 2, 4, ... threads up to `--cpu-workers` and mark the knee "
        "(engine `native`).", commands=("run",))
    checks: bool = _row(
        "flag", True, "Only time: no comparison with a reference, no slope.",
        group="How long", commands=("run", "conv"))
    gpu: bool = _row(
        "flag", True, "Leave out the GPU, also as a comparison.", commands=("conv",))
    counters: bool = _row(
        "flag", True, "Read the Neural Engine's hardware counters, or do not.",
        group="Output", commands=("conv",), flag="--pmu/--no-pmu",
        default_text="on for rows of the Neural Engine")
    save_package: str | None = _row(
        "path", None, "Save each compiled chain in DIR as .mpsgraphpackage (`mpsgraph`).",
        group="Output", commands=("conv",), metavar="DIR", example="packages")
    load_package: str | None = _row(
        "path", None, "Run a saved .mpsgraphpackage; the other options must be those it was saved "
        "with.", commands=("conv",), metavar="DIR", example="packages/NAME.mpsgraphpackage")
    params: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    lenient: bool = False

    @property
    def without(self) -> tuple[str, ...]:
        """Devices to leave out."""
        return () if self.gpu else ("gpu",)


_CHAIN: dict[str, Any] = {
    "commands": ("conv",), "metrics": ("conv",), "group": "Convolutions", "several": True,
}
_PARAMS = (
    Option("batch", "int", 1, "Images (B).", **_CHAIN),
    Option("channels", "int", 128, "Input and output channels of each layer (C).", **_CHAIN),
    Option("layers", "int", 20, "Chained convolutions (L).", high=10_000, **_CHAIN),
    Option("kernel", "int", 3, "Height and width of the kernel (K).", high=127, **_CHAIN),
    Option("weights", "name", "own", "Weights for each layer (`own`), or one constant for all "
           "layers (`shared`).", choices=("own", "shared"),
           aliases=(Alias("--own-weights", "own"), Alias("--shared-weights", "shared")), **_CHAIN),
    Option("enqueue", "int", 1, "Submissions in flight at once: hides the cost of dispatch.",
           high=1000, **_CHAIN),
)
_COMMAND_ONLY = (
    Option("control", "flag", False, "Add a row with 1 x 1 kernels, for which there is no Winograd "
           "algorithm.", ("conv",), "Convolutions"),
    Option("library", "path", None, "A BLAS to preload into a separate process, to see what it "
           "does for MLX.", ("ladder",), flag="--try", example="libopenblas.so.0"),
    Option("verbose_pmu", "flag", False, "Print every register of the counters below the tables.",
           ("conv",), "Output"),
    Option("csv", "path", None, "Write all rows as CSV.", group="Output", example="results.csv"),
    Option("json", "path", None, "Write everything, every sample included, as JSON.",
           group="Output", example="results.json"),
    Option("fail", "flag", True, "Exit with 0 even if a row is INVALID or ERROR.", group="Output"),
)
# fmt: on


def _of_fields() -> Iterator[Option]:
    for item in fields(Options):
        row: Option | None = item.metadata.get("row")
        if row is not None:
            yield replace(row, name=row.name or item.name, attribute=item.name)


OPTIONS: dict[str, Option] = {
    row.name: row
    for row in sorted(
        (*_of_fields(), *_PARAMS, *_COMMAND_ONLY), key=lambda row: get_args(Group).index(row.group)
    )
}


def options_of(command: str) -> list[Option]:
    """The rows of one command, as it has them, in the order of its help."""
    return [row.on(command) for row in OPTIONS.values() if command in row.commands]


def params_of(metric: str) -> dict[str, Option]:
    """The parameters that belong to one metric."""
    return {name: row for name, row in OPTIONS.items() if metric in row.metrics}


_in_python: ContextVar[bool] = ContextVar("_in_python", default=False)


@contextlib.contextmanager
def python_spelling() -> Iterator[None]:
    """Lets sentences name options as keywords of nnbt.run instead of flags."""
    token = _in_python.set(True)
    try:
        yield
    finally:
        _in_python.reset(token)


def spelled(name: str, *values: Any) -> str:
    """An option as the user writes it, with a value or alternatives: --engine mlx, engine='mlx'.

    A list or tuple is one value: --sizes 1024 2048, sizes=[1024, 2048].
    """
    row = OPTIONS[name]
    if row.kind == "flag" and not _in_python.get():
        return row.flags[0]
    if _in_python.get():
        shown = [repr(list(value) if isinstance(value, tuple) else value) for value in values]
        return f"{name}={_listed(shown)}" if values else name
    shown = [
        " ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        for value in values
    ]
    return " ".join([row.flags[0], _listed(shown)]) if values else row.flags[0]


def one_of(name: str, value: str, names: Iterable[str]) -> str:
    """The value. Raises Refusal if it is not one of these names."""
    known = list(names)
    if value not in known:
        raise Refusal(f"Unknown {spelled(name)} {value!r}", f"use one of {' '.join(known)}")
    return value


def make_options(given: Mapping[str, Any], command: str = "") -> Options:
    """Options from values by name, with a command's defaults for the others. Raises Refusal."""
    values: dict[str, Any] = {}
    params = dict(given.get("params", {}))
    for row in (row.on(command) for row in OPTIONS.values()):
        value = given.get(row.name, row.default)
        row.check(value)
        if row.attribute:
            single = OPTIONS[row.name].several and not row.several
            values[row.attribute] = (value,) if single else value
        elif row.metrics and row.name in given:
            params[row.name] = value if isinstance(value, tuple) else (value,)
    return Options(**values, params=params, lenient=given.get("lenient", False))


def check(options: Options) -> None:
    """Raises Refusal for a value that its option cannot have, whoever made the Options."""
    for row in OPTIONS.values():
        if row.attribute:
            row.check(getattr(options, row.attribute))
    if options.sizes and options.ladder_sizes:
        both = spelled("sizes"), spelled("ladder_sizes")
        raise Refusal(f"{both[0]} and {both[1]} both name the sizes", "use one of them")
    known = {name: row for metric in options.metrics for name, row in params_of(metric).items()}
    for name, values in options.params.items():
        if name not in known:
            instead = f"use one of {' '.join(known)}" if known else "leave it out"
            raise Refusal(f"{' '.join(options.metrics)} has no parameter {name!r}", instead)
        for value in values:
            known[name].check(value)
