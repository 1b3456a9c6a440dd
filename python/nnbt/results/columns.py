"""COLUMNS: the one table of output columns, for the terminal, pipes and CSV."""

import csv
import io
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nnbt.peaks.published import Ceiling
from nnbt.peaks.stored import Measured
from nnbt.results.numbers import RATE_UNITS, TERA, number
from nnbt.results.result import Result
from nnbt.spec.details import Counters, DecodedCounters, RailEnergy
from nnbt.spec.threads import KNEE_SHARE, THREADS
from nnbt.timing.statistics import relative_half_width

MIB = 2**20

VERDICT_SYMBOLS = {"VALID": "✓", "SUSPECT": "?", "INVALID": "✗"}
ASCII_SYMBOLS = {"✓": "+", "✗": "!"}
"""For streams that cannot show the others: replaced by `?`, they would all look SUSPECT."""

Value = float | int | str | None


@dataclass(frozen=True)
class Column:
    """One column. `key` names it in CSV with its unit, `header` on a terminal.

    A table has the column if a row has a value other than `usual`. On a narrow terminal the columns
    with the largest `rank` are dropped first; rank 0 always stays, rank None is for CSV only.
    Columns with a `prefix` (G, T) appear if the best rate has that prefix.
    """

    key: str
    header: str
    explain: str
    value: Callable[[Result], Value]
    rank: int | None = 0
    text: bool = False
    usual: Value = None
    decimals: int | None = None  # on a terminal; None: 4 significant digits
    prefix: str = ""
    csv: bool = True


def _times(read: Callable[[Result], float | None], scale: float) -> Callable[[Result], Value]:
    def value(row: Result) -> Value:
        number = read(row)
        return None if number is None else number * scale

    return value


def _scaled(attribute: str, scale: float) -> Callable[[Result], Value]:
    return _times(operator.attrgetter(attribute), scale)


def _size(name: str, scale: float = 1 / MIB) -> Callable[[Result], Value]:
    return _times(lambda row: row.sizes.get(name), scale)


def _rate(attribute: str, unit: str, scale: float) -> Callable[[Result], Value]:
    scaled = _scaled(attribute, scale)
    return lambda row: scaled(row) if row.unit == unit else None


def _interval(index: int) -> Callable[[Result], Value]:
    return lambda row: row.interval_s[index] * 1e3 if row.interval_s else None


def _half_width(row: Result) -> Value:
    """Half of the 95 % interval of the median, in percent of the median."""
    width = relative_half_width(row.interval_s, row.median_s)
    return None if width is None else width * 100


def _param(name: str) -> Callable[[Result], Value]:
    return lambda row: row.case.params.get(name)


def _share_of(ceiling: Ceiling | Measured | None, row: Result) -> Value:
    return None if ceiling is None or row.rate is None else row.rate / ceiling.rate * 100


def _threads(row: Result) -> Value:
    """Pinned threads; streams of MLX are in the title of a table."""
    return row.case.params.get(THREADS) if row.case.engine == "native" else None


def _knee(row: Result) -> Value:
    return row.sweep.knee_threads if row.sweep is not None else None


def _share_of_sweep(row: Result) -> Value:
    """Rate over the best of the sweep of threads, in percent."""
    return None if row.sweep is None or not row.rate else row.rate / row.sweep.best_rate * 100


def _op_shown(row: Result) -> Value:
    """The operation, if an engine measures several of them in one run."""
    return None if row.case.engine.startswith("mlx") else row.case.params.get("op")


def _bytes_rate(name: str) -> Callable[[Result], Value]:
    """GB/s in another convention of counting bytes."""

    def value(row: Result) -> Value:
        size = row.sizes.get(name)
        return None if size is None or not row.median_s else size / row.median_s * 1e-9

    return value


def _dtype(row: Result) -> Value:
    return f"{row.case.dtype} ({row.precision})" if row.precision else row.case.dtype


def _rates(attribute: str, prefix: str, explain: str, rank: int) -> tuple[Column, ...]:
    return tuple(
        Column(
            f"{prefix}{key}",
            f"{prefix.rstrip('_')} {header}".strip(),
            f"{explain}, in {header}",
            _rate(attribute, unit, scale),
            rank,
            prefix=magnitude,
        )
        for unit, magnitude, header, key, scale in RATE_UNITS
    )


def _exact(scale: float) -> Callable[[Result], Value]:
    whole = _rate("rate", "OP/s", scale)

    def value(row: Result) -> Value:
        rate, exact = whole(row), row.sizes.get("exact_ops")
        if not isinstance(rate, float) or exact is None:
            return None
        return rate * exact / row.sizes["work_ops"]

    return value


def _placement(row: Result) -> Value:
    return row.details.placement.verdict if row.details.placement is not None else None


def _pmu_status(row: Result) -> Value:
    return row.details.counters.status if row.details.counters is not None else None


def _pmu(read: Callable[[Counters], float | None], scale: float) -> Callable[[Result], Value]:
    """A number of the Neural Engine's counters."""
    return _times(lambda row: read(row.details.counters) if row.details.counters else None, scale)


def _decoded(
    read: Callable[[DecodedCounters], float | None], scale: float = 1.0
) -> Callable[[Result], Value]:
    return _pmu(lambda c: read(c.decoded) if c.decoded is not None else None, scale)


def _rail(read: Callable[[RailEnergy], float | None], scale: float) -> Callable[[Result], Value]:
    """Energy or power of the Neural Engine's rail."""

    def value(row: Result) -> float | None:
        rail = row.details.power.rail("ANE") if row.details.power is not None else None
        return read(rail) if rail is not None else None

    return _times(value, scale)


_DTYPE = "element type, with the precision if that differs"
_EXACT = "rate without products with padding"
_HALF = "half of the 95 % confidence interval of the median"
_KNEE = f"fewest threads that reach {KNEE_SHARE:.0%} of the best rate of --thread-sweep"
_WEIGHTS = "separate for each layer (own), or shared by all"
_WALL = "median time of an evaluation without MPSGraph, by the host's clock"
_HW_MS = "median hardware time of an evaluation, as the driver reports it"
_HW = "rate of one evaluation, from the driver's hardware time"
_LANES = "share of the multiply-accumulates that a core can do per cycle"
_CLOCK = "clock of the ANE: nominal cycles / (time x cores)"

# fmt: off
COLUMNS: tuple[Column, ...] = (
    Column("metric", "metric", "what was measured", lambda r: r.case.metric, None, True),
    Column("device", "device", "where the work ran", lambda r: r.case.device, None, True),
    Column("engine", "engine", "what did the work", lambda r: r.case.engine, None, True),
    Column("dtype", "dtype", "element type as requested", lambda r: r.case.dtype, None, True),
    Column("precision", "precision", "what was computed", lambda r: r.precision, None, True),
    Column("dtype_shown", "dtype", _DTYPE, _dtype, 1, True, csv=False),
    Column("op", "op", "operation of bandwidth", _param("op"), None, True),
    Column("op_shown", "op", "operation of bandwidth", _op_shown, 0, True, csv=False),
    Column("stores", "stores", "ordinary or non-temporal", _param("stores"), 0, True),
    Column("chain", "chain", "instructions that were issued", _param("chain"), 0, True),
    Column("graph_steps", "steps", "products per evaluation", _param("graph_steps"), None),
    Column("cpu_workers", "workers", "CPU threads (mlx: streams)", _param("cpu_workers"), None),
    Column("data", "data", "what the inputs contain", _param("data"), None, True),
    Column("data_shown", "data", "what the inputs contain", _param("data"), 0, True, "normal",
        csv=False),
    Column("n", "n", "n of n x n matrices or images, as requested", lambda r: r.case.n or None),
    Column("threads", "threads", "pinned threads (engine native)", _threads, 0),
    Column("fits_in", "in", "the cache that holds all arrays, or memory",
        lambda r: r.details.fits_in, 1, True),
    Column("batch", "B", "images", _param("batch"), 5),
    Column("channels", "C", "channels of each layer, in and out", _param("channels"), 0),
    Column("layers", "L", "chained layers", _param("layers"), 0),
    Column("kernel", "K", "height and width of the kernel", _param("kernel"), 0),
    Column("weights", "weights", _WEIGHTS, _param("weights"), None, True),
    Column("enqueue", "enqueue", "submissions in flight", _param("enqueue"), None),
    Column("eff_n", "eff n", "size after padding (quantised dtypes)", _size("eff_n", 1)),
    Column("matrix_mib", "matrix MiB", "size of one matrix", _size("matrix_bytes"), 6),
    Column("act_mib", "act MiB", "activations (quantised dtypes, conv)", _size("act_bytes"), 5),
    Column("weight_mib", "weight MiB", "weights, with scales and biases", _size("weight_bytes"), 4),
    Column("io_mib", "I/O MiB", "bytes read and written per run", _size("io_bytes"), 5),
    Column("median_ms", "median ms", "median run time", _scaled("median_s", 1e3)),
    Column("interval_pct", "±%", _HALF, _half_width, 2, decimals=1),
    Column("interval_low_ms", "low", "lower end of that interval", _interval(0), None),
    Column("interval_high_ms", "high", "upper end of that interval", _interval(1), None),
    Column("best_ms", "best ms", "fastest run", _scaled("best_s", 1e3), None),
    Column("runs", "runs", "timed runs", lambda r: r.runs or None, 1),
    Column("stopped", "stopped by", "why timing ended", lambda r: r.stop, 6, True),
    *_rates("rate", "", "rate from the median", 0),
    Column("exact_gops", "exact GOPS", _EXACT, _exact(1e-9), 5, prefix="G"),
    Column("exact_tops", "exact TOPS", _EXACT, _exact(1e-12), 5, prefix="T"),
    *_rates("best_rate", "best_", "rate of the fastest run", 4),
    *_rates("slope_rate", "slope_", "rate free of the fixed cost of an evaluation", 3),
    Column("ratio_to_random", "x random", "rate relative to the same case on random data",
        lambda r: r.ratio_to_random, 0),
    Column("bytes_per_element", "B/elem", "bytes counted per element", _size("element_bytes", 1),
        6),
    Column("bus_gb_per_s", "bus GB/s", "rate with write-allocate counted",
        _bytes_rate("traffic_bytes"), 4),
    Column("moved_gb_per_s", "moved GB/s", "rate with each byte counted once",
        _bytes_rate("bcopy_bytes"), 5),
    Column("pct_of_sweep", "% best", "share of the best rate of --thread-sweep", _share_of_sweep, 1,
        decimals=1),
    Column("knee_threads", "knee", _KNEE, _knee, 1),
    Column("pct_of_peak", "% peak", "share of the published peak",
        lambda r: _share_of(r.ceiling, r), 2, decimals=1),
    Column("pct_of_ceiling", "% ceiling", "share of the measured ceiling of this machine",
        lambda r: _share_of(r.measured_ceiling, r), 2, decimals=1),
    Column("overhead_us", "fixed us", "fixed cost of an evaluation", lambda r: r.overhead_us, 7,
        decimals=1),
    # Rows of the Neural Engine: where they ran, its counters, its energy.
    Column("placement", "placement", "where a chain ran", _placement, 4, True),
    Column("pmu", "counters", "status of the ANE's counters", _pmu_status, 3, True),
    Column("ane_wall_ms", "ANE wall ms", _WALL, _pmu(lambda c: c.wall_s, 1e3), 6),
    Column("ane_hw_ms", "ANE hw ms", _HW_MS, _pmu(lambda c: c.hw_s, 1e3), 5),
    Column("hw_gops", "hw GOPS", _HW, _decoded(lambda d: d.hw_ops_per_s, 1e-9), 4, prefix="G"),
    Column("hw_tops", "hw TOPS", _HW, _decoded(lambda d: d.hw_ops_per_s, 1e-12), 4, prefix="T"),
    Column("macs_per_cycle_core", "MACs/cyc/core",
        "multiply-accumulates per nominal cycle and core",
        _decoded(lambda d: d.macs_per_cycle_core), 3),
    Column("pct_of_lanes", "% lanes", _LANES, _decoded(lambda d: d.utilisation, 100), 3,
        decimals=1),
    Column("ane_clock_ghz", "ANE GHz", _CLOCK, _decoded(lambda d: d.clock_hz, 1e-9), 5),
    Column("dma_gb_per_s", "DMA GB/s", "memory traffic of the ANE over hardware time",
        _decoded(lambda d: d.dma_bytes_per_s, 1e-9), 4),
    Column("ane_mj", "ANE mJ", "energy of the ANE per run (IOReport)",
        _rail(lambda r: r.run_energy_j, 1e3), 4),
    Column("ane_w", "ANE W", "power of the ANE (IOReport)", _rail(lambda r: r.power_w, 1.0), 6),
    Column("effective_bits", "bits", "correct bits of the output", lambda r: r.effective_bits, 3,
        decimals=1),
    Column("verdict", "verdict", "whether the number can be used", lambda r: r.verdict or r.status,
        0, True),
    Column("status", "status", "OK, UNSUPPORTED or ERROR", lambda r: r.status, None, True),
    Column("reasons", "reasons", "codes of failed checks and of notes",
        lambda r: " ".join(reason.code for reason in r.reasons), None, True),
    Column("reason", "reason", "why there is no number", lambda r: r.reason, None, True),
)
# fmt: on
CSV_COLUMNS = tuple(column for column in COLUMNS if column.csv)


def shown(column: Column, value: Value) -> str:
    """The cell of a table: `-` for no value, a symbol before a verdict."""
    if value is None or value == "":
        return "-"
    if isinstance(value, str):
        verdict = column.key == "verdict"
        return f"{VERDICT_SYMBOLS.get(value, '-')} {value}" if verdict else value
    if column.decimals is None or math.isinf(value):
        return number(value)
    return f"{value:.{column.decimals}f}"


def chosen(rows: Sequence[Result]) -> list[Column]:
    """Columns for a terminal table of these rows: those that hold a value; G or T, not both."""
    best = max((row.rate or 0 for row in rows), default=0)
    prefixes = ("", "T" if best >= TERA else "G")
    return [
        column
        for column in COLUMNS
        if column.rank is not None
        and column.prefix in prefixes
        and any(column.value(row) not in (None, "", column.usual) for row in rows)
    ]


def csv_text(rows: Sequence[Result]) -> str:
    """All rows under one header; plain numbers, empty where there is none."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.key for column in CSV_COLUMNS])
    for row in rows:
        writer.writerow([_plain(column.value(row)) for column in CSV_COLUMNS])
    return stream.getvalue()


def _plain(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.9g}" if math.isfinite(value) else ""
    return "" if value is None else str(value)
