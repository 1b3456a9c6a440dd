"""python -m nnbt, and the command."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Entry point of `nnbt`: Ctrl-C while it starts is no traceback either."""
    try:
        from nnbt.cli import main as cli
    except KeyboardInterrupt:
        sys.stderr.write("nnbt: interrupted before anything was measured.\n")
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
