"""What the checks cost: their seconds beside the timed window of each case.

    python tests/bench/check_cost.py [--device auto] [--sizes 4096] [--metric bandwidth]

`answer` compares outputs with references, `slope` times K units of work. Both together should take
less than 30 % of the window at n = 4096 and more; where a slope had to be taken again because it
did not prove the work at first (a busy machine), it takes up to a second more.
"""

import argparse

import nnbt
from nnbt.spec.metric import METRICS

BAR = 0.30
DTYPES = ("float32", "bfloat16", "float16", "complex64", "q4", "int8", "uint16", "int64")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4096])
    parser.add_argument("--metric", action="append", choices=list(METRICS))
    parser.add_argument("--dtype", action="append")
    parser.add_argument("--max-seconds", type=float, default=3.0)
    options = parser.parse_args()
    shares = []
    print(
        f"{'metric':12} {'dtype':10} {'n':>6} {'window s':>9} {'answer s':>9} {'slope s':>8}  share"
    )
    for metric in options.metric or ["bandwidth", "flops", "flops_graph"]:
        for dtype in options.dtype or DTYPES:
            for n in options.sizes:
                try:
                    (row,) = nnbt.run(
                        metric, options.device, dtype, [n], max_seconds=options.max_seconds
                    ).results
                except nnbt.Unsupported:
                    continue  # the table has no such cell
                if row.window_s is None or row.check_cost is None:
                    print(f"{metric:12} {dtype:10} {n:6}  {row.status}: {row.reason}")
                    continue
                cost = row.check_cost
                share = (cost.answer_s + cost.slope_s) / row.window_s
                shares.append(share)
                print(
                    f"{metric:12} {dtype:10} {n:6} {row.window_s:9.2f} {cost.answer_s:9.3f} "
                    f"{cost.slope_s:8.3f} {share:6.1%}  {' '.join(r.code for r in row.reasons)}",
                    flush=True,
                )
    above = sum(share > BAR for share in shares)
    print(f"{len(shares)} rows, at most {max(shares, default=0):.1%}; {above} above {BAR:.0%}")


if __name__ == "__main__":
    main()
