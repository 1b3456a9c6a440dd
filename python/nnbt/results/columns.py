"""COLUMNS: the one table of output columns, for the terminal, pipes and CSV."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from nnbt.results.ane_columns import ANE_COLUMNS
from nnbt.results.column import Column, Value
from nnbt.spec.threads import KNEE_SHARE, THREADS
from nnbt.timing.statistics import relative_half_width

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nnbt.peaks.published import Ceiling
    from nnbt.peaks.stored import Measured
    from nnbt.results.result import Result

MIB = 2**20

VERDICT_SYMBOLS = {"VALID": "✓", "SUSPECT": "?", "INVALID": "✗"}
ASCII_SYMBOLS = {"✓": "+", "✗": "!"}
"""For streams that can't show the others: replaced by `?`, they would all look SUSPECT."""


def _size(name: str, scale: int = MIB) -> Callable[[Result], Value]:
    def value(row: Result) -> Value:
        size = row.sizes.get(name)
        return None if size is None else size / scale if scale > 1 else size

    return value


def _scaled(attribute: str, scale: float) -> Callable[[Result], Value]:
    def value(row: Result) -> Value:
        number = getattr(row, attribute)
        return None if number is None else number * scale

    return value


def _rate(attribute: str, unit: str, scale: float) -> Callable[[Result], Value]:
    def value(row: Result) -> Value:
        number = getattr(row, attribute)
        return number * scale if number is not None and row.unit == unit else None

    return value


def _interval(index: int) -> Callable[[Result], Value]:
    def value(row: Result) -> Value:
        return row.interval_s[index] * 1e3 if row.interval_s else None

    return value


def half_width(row: Result) -> Value:
    """Half of the 95 % interval of the median, in percent of the median."""
    width = relative_half_width(row.interval_s, row.median_s)
    return None if width is None else width * 100


def _param(name: str) -> Callable[[Result], Value]:
    return lambda row: row.case.params.get(name)


def _verdict(row: Result) -> Value:
    return row.verdict or row.status


def _ratio(row: Result) -> Value:
    return row.ratio_to_random


def _share_of(ceiling: Ceiling | Measured | None, row: Result) -> Value:
    return None if ceiling is None or row.rate is None else row.rate / ceiling.rate * 100


def _threads(row: Result) -> Value:
    """Pinned threads; streams of MLX stand in the title of a table."""
    return row.case.params.get(THREADS) if row.case.engine == "native" else None


def _knee(row: Result) -> Value:
    return row.sweep.knee_threads if row.sweep is not None else None


def _share_of_sweep(row: Result) -> Value:
    """Rate over the best of the sweep of threads, in percent."""
    return None if row.sweep is None or not row.rate else row.rate / row.sweep.best_rate * 100


def _op_shown(row: Result) -> Value:
    """The operation where an engine has several of them in one run."""
    return None if row.case.engine.startswith("mlx") else row.case.params.get("op")


def _bytes_rate(name: str) -> Callable[[Result], Value]:
    """GB/s in another convention of counting bytes."""

    def value(row: Result) -> Value:
        size = row.sizes.get(name)
        return None if size is None or not row.median_s else size / row.median_s * 1e-9

    return value


def _dtype(row: Result) -> Value:
    return f"{row.case.dtype} ({row.precision})" if row.precision else row.case.dtype


_RATE_UNITS = (
    ("B/s", "GB/s", "gb_per_s", 1e-9),
    *(
        (f"{family}/s", f"{prefix}{family}S", f"{prefix.lower()}{family.lower()}s", scale)
        for family in ("FLOP", "IOP", "QOP", "OP")
        for prefix, scale in (("G", 1e-9), ("T", 1e-12))
    ),
)


def _rates(attribute: str, prefix: str, explain: str, rank: int) -> tuple[Column, ...]:
    return tuple(
        Column(
            f"{prefix}{key}" if prefix else key,
            f"{prefix.rstrip('_')} {header}".strip(),
            f"{explain}, in {header}",
            _rate(attribute, unit, scale),
            rank,
        )
        for unit, header, key, scale in _RATE_UNITS
    )


def _exact(unit: str, scale: float) -> Callable[[Result], Value]:
    whole = _rate("rate", unit, scale)

    def value(row: Result) -> Value:
        rate, exact = whole(row), row.sizes.get("exact_ops")
        if not isinstance(rate, float) or exact is None:
            return None
        return rate * exact / row.sizes["work_ops"]

    return value


_EXACT = "rate without products with padding"
COLUMNS: tuple[Column, ...] = (
    Column("metric", "metric", "what was measured", lambda r: r.case.metric, None, text=True),
    Column("device", "device", "where", lambda r: r.case.device, None, text=True),
    Column("engine", "engine", "by what", lambda r: r.case.engine, None, text=True),
    Column("dtype", "dtype", "element type that was asked for", lambda r: r.case.dtype, None, True),
    Column("precision", "precision", "how it was computed", lambda r: r.precision, None, True),
    Column("dtype_shown", "dtype", "element type, and what was computed", _dtype, 1, True),
    Column("op", "op", "bandwidth operation", _param("op"), None, text=True),
    Column("op_shown", "op", "bandwidth operation", _op_shown, 0, text=True),
    Column("stores", "stores", "ordinary or round the caches", _param("stores"), 0, text=True),
    Column("chain", "chain", "instructions that were issued", _param("chain"), 0, text=True),
    Column("graph_steps", "steps", "products in one evaluation", _param("graph_steps"), None),
    Column("cpu_workers", "workers", "MLX CPU streams", _param("cpu_workers"), None),
    Column("data", "data", "what the inputs held", _param("data"), None, text=True),
    Column("data_shown", "data", "what the inputs held", _param("data"), 0, True, "normal"),
    Column("n", "n", "requested size N of N x N matrices or images", lambda r: r.case.n or None),
    Column("threads", "threads", "pinned threads (engine native)", _threads, 0),
    Column(
        "fits_in",
        "in",
        "what holds all arrays: a cache or memory",
        lambda r: r.details.fits_in,
        1,
        text=True,
    ),
    Column("batch", "B", "images", _param("batch"), 5),
    Column("channels", "C", "channels of a layer, in and out", _param("channels"), 0),
    Column("layers", "L", "chained layers", _param("layers"), 0),
    Column("kernel", "K", "height and width of the kernel", _param("kernel"), 0),
    Column("weights", "weights", "own of each layer, or shared", _param("weights"), None, True),
    Column("enqueue", "enqueue", "submissions in flight at once", _param("enqueue"), None),
    Column("eff_n", "eff n", "size after padding (quantised types)", _size("eff_n", 1)),
    Column("matrix_mib", "matrix MiB", "size of one matrix", _size("matrix_bytes"), 6),
    Column("act_mib", "act MiB", "activations (quantised types, conv)", _size("act_bytes"), 5),
    Column("weight_mib", "weight MiB", "weights, with scales and biases", _size("weight_bytes"), 4),
    Column("io_mib", "I/O MiB", "bytes read and written a run", _size("io_bytes"), 5),
    Column("median_ms", "median ms", "median run time", _scaled("median_s", 1e3)),
    Column("interval_pct", "±%", "half of the 95 % interval of the median", half_width, 2),
    Column("interval_low_ms", "low", "lower end of that interval", _interval(0), None),
    Column("interval_high_ms", "high", "upper end of that interval", _interval(1), None),
    Column("best_ms", "best ms", "fastest run", _scaled("best_s", 1e3), None),
    Column("runs", "runs", "timed runs", lambda r: r.runs or None, 1),
    Column("stopped", "stopped by", "why timing ended", lambda r: r.stop, 6, text=True),
    *_rates("rate", "", "rate from the median", 0),
    Column("exact_gops", "exact GOPS", _EXACT, _exact("OP/s", 1e-9), 5),
    Column("exact_tops", "exact TOPS", _EXACT, _exact("OP/s", 1e-12), 5),
    *_rates("best_rate", "best_", "rate of the fastest run", 4),
    *_rates("slope_rate", "slope_", "rate free of the constant cost of an evaluation", 3),
    Column("ratio_to_random", "x random", "rate over that of random data", _ratio, 0),
    Column("bytes_per_element", "B/elem", "counted bytes an element", _size("element_bytes", 1), 6),
    Column("bus_gb_per_s", "bus GB/s", "with write-allocate", _bytes_rate("traffic_bytes"), 4),
    Column("moved_gb_per_s", "moved GB/s", "each byte once", _bytes_rate("bcopy_bytes"), 5),
    Column("pct_of_sweep", "% best", "rate over the best of --thread-sweep", _share_of_sweep, 1),
    Column(
        "knee_threads",
        "knee",
        f"fewest threads that reach {KNEE_SHARE:.0%} of the best rate of --thread-sweep",
        _knee,
        1,
    ),
    Column(
        "pct_of_peak",
        "% peak",
        "rate over the published peak",
        lambda r: _share_of(r.ceiling, r),
        2,
    ),
    Column(
        "pct_of_ceiling",
        "% ceiling",
        "rate over the best that engine native or kernel measured on this machine",
        lambda r: _share_of(r.measured_ceiling, r),
        2,
    ),
    Column("overhead_us", "over us", "constant cost of an evaluation", lambda r: r.overhead_us, 7),
    *ANE_COLUMNS,
    Column("effective_bits", "bits", "right bits of the output", lambda r: r.effective_bits, 3),
    Column("verdict", "verdict", "whether the number can be believed", _verdict, 0, text=True),
    Column("status", "status", "OK, or why there is no number", lambda r: r.status, None, True),
    Column(
        "reasons",
        "reasons",
        "codes of the checks that did not pass",
        lambda r: " ".join(reason.code for reason in r.reasons),
        None,
        text=True,
    ),
    Column("reason", "reason", "why there is no number", lambda r: r.reason, None, text=True),
)
_ONE_DIGIT = {"interval_pct", "effective_bits", "overhead_us"}
TERMINAL_ONLY = {"dtype_shown", "data_shown", "op_shown"}


def number(value: float) -> str:
    """A number with as many digits as its size deserves: 4 significant, none cut before a dot."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return "exact" if value == math.inf else "-"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(float(f"{value:.3e}"))))  # 999.96 has that of 1000
    if magnitude >= 3:
        return f"{value:.0f}"
    if magnitude >= -3:
        return f"{value:.{min(6, 3 - magnitude)}f}"
    return f"{value:.3e}"


def shown(column: Column, value: Value) -> str:
    """The cell of a table: `-` for no value, a symbol before a verdict, short percentages."""
    if value is None or value == "":
        return "-"
    if column.key == "verdict":
        return f"{VERDICT_SYMBOLS.get(str(value), '-')} {value}"
    if isinstance(value, str):
        return value
    if column.key.startswith("pct_") or column.key in _ONE_DIGIT:
        return "exact" if value == math.inf else f"{value:.1f}"
    return number(value)


def rate_text(rate: float, unit: str) -> str:
    """A rate with its unit, in G or T."""
    here = [(header, scale) for base, header, _, scale in _RATE_UNITS if base == unit]
    header, scale = here[-1] if rate >= 1e12 else here[0]
    return f"{number(rate * scale)} {header}"


def chosen(rows: Sequence[Result]) -> list[Column]:
    """Columns for a terminal table of these rows: those that hold a value; G or T, not both."""
    best = max((row.rate or 0 for row in rows), default=0)
    skip = "T" if best < 1e12 else "G"
    columns = []
    for column in COLUMNS:
        nothing = (None, "", column.usual)
        if column.rank is None or all(column.value(row) in nothing for row in rows):
            continue
        word = column.header.split()[-1]
        if word.endswith("OPS") and word[0] == skip:
            continue
        columns.append(column)
    return columns


def csv_text(rows: Sequence[Result]) -> str:
    """All rows under one header; plain numbers, empty where there is none."""
    columns = [column for column in COLUMNS if column.key not in TERMINAL_ONLY]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.key for column in columns])
    for row in rows:
        writer.writerow([_plain(column.value(row)) for column in columns])
    return stream.getvalue()


def _plain(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}" if math.isfinite(value) else ""
    return str(value)
