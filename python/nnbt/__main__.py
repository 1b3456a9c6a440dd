"""python -m nnbt, and the command."""

from typing import NoReturn

from nnbt.cli import quit_on_interrupt


def main() -> NoReturn:
    """Entry point of `nnbt`: Ctrl-C while it starts is no traceback either."""
    quit_on_interrupt()
    from nnbt.cli import main as cli

    cli.main()


if __name__ == "__main__":
    main()
