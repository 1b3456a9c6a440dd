"""python -m nnbt, and the command."""

from nnbt.cli import quit_on_interrupt

TYPE_CHECKING = False  # importing typing takes 10 ms, in which Ctrl-C would be a traceback
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Entry point of `nnbt`: Ctrl-C while it starts is no traceback either."""
    quit_on_interrupt()
    from nnbt.cli import main as cli

    cli.main()


if __name__ == "__main__":
    main()
