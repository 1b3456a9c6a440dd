"""`nnbt conv`: options are parsed and handed on to the same run as every other metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nnbt.cli.options import (
    COUNT,
    CSV,
    JSON,
    MAX_SECONDS,
    NO_CHECKS,
    NO_FAIL,
    TF32,
    WARMUP,
    Number,
    with_options,
)
from nnbt.cli.run import EXIT_FAILED, Files, measure_and_print

if TYPE_CHECKING:
    from nnbt.spec.options import Options


def _count(option: str, default: int | None, help_text: str) -> Any:
    return click.option(
        option,
        type=COUNT if default is None else Number(int, str(default)),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=help_text,
    )


_OPTIONS = (
    click.option(
        "--variant",
        default=None,
        metavar="NAME",
        help="fp16, int8, qdq, w8a8 (the last three through MPSGraph only) or all.  "
        "[default: all that the engine has]",
    ),
    click.option(
        "--dtype",
        "dtypes",
        multiple=True,
        metavar="NAME",
        help="Instead of --variant, for engine mlx: float16, bfloat16 or float32; repeatable.",
    ),
    click.option(
        "--engine",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="mpsgraph (Apple), mlx, or auto: the first of these that is there.",
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="cpu, gpu, ane, all, or auto: all of mpsgraph, the best one of mlx.",
    ),
    _count("--batch", 1, "Images (B)."),
    _count("--size", 256, "Height and width of an image (n)."),
    _count("--channels", 128, "Input and output channels of each layer (C)."),
    _count("--layers", 20, "Chained convolutions (L)."),
    _count("--kernel", 3, "Height and width of the kernel (K)."),
    click.option(
        "--own-weights/--shared-weights",
        default=True,
        show_default="own",
        help="Weights of its own for each layer, or one constant for all.",
    ),
    click.option(
        "--fill",
        default="normal",
        show_default=True,
        metavar="NAME",
        help="What inputs and weights hold: normal or zeros.",
    ),
    click.option(
        "--control",
        is_flag=True,
        help="Add a row with 1 x 1 kernels, which no Winograd transform can shorten.",
    ),
    _count("--enqueue", 1, "Submissions in flight at once: hides the cost of dispatch."),
    _count(
        "--iterations",
        None,
        "Exactly N timed runs.  [default: until the median is known to 1 %, at least 5]",
    ),
    WARMUP,
    MAX_SECONDS,
    TF32,
    click.option("--no-gpu", is_flag=True, help="Leave the GPU out, also as a comparison."),
    click.option(
        "--pmu/--no-pmu",
        default=None,
        show_default="on for rows of the Neural Engine",
        help="Read the Neural Engine's hardware counters, where the system lets them be read.",
    ),
    click.option(
        "--verbose-pmu",
        is_flag=True,
        help="Print every register of the counters below the tables.",
    ),
    click.option(
        "--save-package",
        default=None,
        metavar="DIR",
        help="Save each compiled chain as .mpsgraphpackage in DIR (mpsgraph only).",
    ),
    click.option(
        "--load-package",
        default=None,
        metavar="DIR",
        help="Run a saved .mpsgraphpackage; the other options must be those it was saved with.",
    ),
    CSV,
    JSON,
    NO_CHECKS,
    NO_FAIL,
)


@click.command()
@with_options(_OPTIONS)
@click.pass_context
def conv(ctx: click.Context, /, **values: Any) -> None:
    """Measure chains of 2-D convolutions: TOPS on CPU, GPU and Apple's Neural Engine.

    Without options: 20 layers of 3 x 3 kernels, 128 channels, images of 256 x 256.
    """
    files = Files(values["csv_path"], values["json_path"])
    run = measure_and_print(options_of(values), files)
    if values["verbose_pmu"]:
        from nnbt.engines.mpsgraph.registers import registers_text

        click.echo(registers_text(run.results), nl=False)
    if run.failed and not values["no_fail"]:
        ctx.exit(EXIT_FAILED)


def options_of(values: dict[str, Any]) -> Options:
    """The Options that the command line stands for. Raises Unsupported with one sentence."""
    from nnbt._native import Unsupported
    from nnbt.engines.mpsgraph import conv as mps_conv
    from nnbt.spec.conv import FILLS
    from nnbt.spec.options import Options

    for option in ("save_package", "load_package"):
        if values[option] == "":
            typed = f"--{option.replace('_', '-')}"
            raise Unsupported(f"{typed} names no folder: type {typed} packages, or leave it out.")
    engine = values["engine"]
    if engine == "auto":
        engine = "mpsgraph" if mps_conv.missing() is None else "mlx"
    device = values["device"]
    if device == "auto" and engine == "mpsgraph":
        device = "all"
    asked = [name for name in ("pmu", "verbose_pmu") if values[name]]
    if asked and (engine != "mpsgraph" or device not in ("all", "ane") or values["pmu"] is False):
        raise Unsupported(
            f"--{asked[0].replace('_', '-')} shows the counters of the Neural Engine: type it with "
            "--engine mpsgraph --device ane and without --no-pmu, on an Apple silicon Mac."
        )
    dtypes, every = _dtypes(engine, values["variant"], values["dtypes"])
    if values["fill"] not in FILLS:
        raise Unsupported(f"Unknown --fill {values['fill']!r}: type one of {' '.join(FILLS)}.")
    kernels = (values["kernel"], 1) if values["control"] else (values["kernel"],)
    return Options(
        metrics=("conv",),
        device=device,
        engines=(engine,),
        dtypes=dtypes,
        sizes=(values["size"],),
        data=(values["fill"],),
        tf32=values["tf32"],
        warmup=values["warmup"],
        runs=values["iterations"],
        max_seconds=values["max_seconds"],
        checks=not values["no_checks"],
        params={
            "batch": (values["batch"],),
            "channels": (values["channels"],),
            "layers": (values["layers"],),
            "kernel": tuple(dict.fromkeys(kernels)),
            "weights": ("own" if values["own_weights"] else "shared",),
            "enqueue": (values["enqueue"],),
        },
        without=("gpu",) if values["no_gpu"] else (),
        lenient=every or device == "all",
        counters=values["pmu"] is not False,
        save_package=values["save_package"],
        load_package=values["load_package"],
    )


def _dtypes(
    engine: str, variant: str | None, dtypes: tuple[str, ...]
) -> tuple[tuple[str, ...], bool]:
    """(types, whether they stand for all that there are)."""
    from nnbt._native import Unsupported
    from nnbt.spec.conv import VARIANTS

    if dtypes and variant is not None:
        raise Unsupported("--variant and --dtype both name the type: type one of them.")
    if dtypes:
        return dtypes, False
    if variant is None and engine == "mlx":
        return (VARIANTS["fp16"],), False
    if variant in (None, "all"):
        return tuple(VARIANTS.values()), True
    if variant not in VARIANTS:
        raise Unsupported(
            f"Unknown --variant {variant!r}: type all or one of {' '.join(VARIANTS)}."
        )
    return (VARIANTS[variant],), False
