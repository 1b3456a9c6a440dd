"""The same rows from two installed versions: every command of a README, on the CPU.

    python tests/bench/same_rows.py OLD/bin/nnbt NEW/bin/nnbt README.md

Each command runs with both, with few runs and small matrices; cases, status, unit, sizes, counted
precision and exit codes must agree, and times may differ. Prints one line a command; exit code 1
for a difference. The README is that of the old version, so that its option names are tried too.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from nnbt.results.files import load

SMALL = {
    "flops": ["--sizes", "256", "512"],
    "flops_graph": ["--sizes", "200"],
    "bandwidth": ["--sizes", "512", "1024"],
}
TIMED = {"cpu_repetitions", "gpu_repetitions", "passes"}


def commands(readme: str) -> list[list[str]]:
    """The nnbt commands of the README's sh blocks, each once."""
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    lines = [line.split("&&")[-1].strip() for block in blocks for line in block.splitlines()]
    return [shlex.split(line) for line in dict.fromkeys(lines) if re.match(r"nnbt\b", line)]


def reduced(words: list[str]) -> list[str]:
    """The command with few runs, small matrices and no files."""
    words = words[1:]
    for option in ("--csv", "--json", "--size"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    if words and words[0] in ("info", "sign-helper"):
        return words
    ladder, conv = words[:1] == ["ladder"], words[:1] == ["conv"]
    metric = words[words.index("--metric") + 1] if "--metric" in words else "bandwidth"
    if ladder and "--metric" not in words:
        metric = "flops"
    more = ["--no-fail", "--runs" if not conv else "--iterations", "5"]
    if conv:
        more += ["--size", "16", "--channels", "8", "--layers", "3"]
    elif "--engine" not in words or "mlx" in words or metric != "flops":
        if "--sizes" in words:
            at = words.index("--sizes") + 1
            while at < len(words) and words[at].isdigit():
                del words[at]
            del words[at - 1]
        more += SMALL[metric]
    return words + more


def ran(nnbt: str, words: list[str]) -> tuple[int, list[dict[str, object]]]:
    """Exit code, and what must not differ of each row."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        plain = words and words[0] in ("info", "sign-helper")
        done = subprocess.run(
            [nnbt, *words, *([] if plain else ["--json", str(path)])],
            capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
        if not path.is_file():
            return done.returncode, []
        rows = load(path).results
    return done.returncode, [
        {
            "case": row.case.key,
            "status": row.status,
            "unit": row.unit,
            "sizes": {name: size for name, size in row.sizes.items() if name not in TIMED},
            "checked": row.answer is not None,
            # Which of the rotating inputs was the last one moves the first decimal.
            "bits": None if row.effective_bits is None else round(row.effective_bits / 4),
            "precision": row.precision.partition(",")[0],
        }
        for row in rows
    ]


def main() -> int:
    """Compares; 1 for any difference."""
    old, new, readme = sys.argv[1:]
    differ = 0
    for words in commands(Path(readme).read_text(encoding="utf-8")):
        asked = reduced(words)
        before, after = ran(old, asked), ran(new, asked)
        same = before == after
        differ += not same
        print(f"{'same' if same else 'DIFFERS':8}{len(before[1]):3} rows  {shlex.join(asked)}")
        if not same:
            print(f"  exit {before[0]} -> {after[0]}, {len(before[1])} -> {len(after[1])} rows")
            for one, other in zip(before[1], after[1], strict=False):
                if one != other:
                    print(f"  - {json.dumps(one)}\n  + {json.dumps(other)}")
    return min(differ, 1)


if __name__ == "__main__":
    sys.exit(main())
