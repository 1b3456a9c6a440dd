"""The command line: its exit codes, and Ctrl-C while it starts."""

import contextlib
import os
import signal

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def _quit(*_: object) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"nnbt: interrupted before anything was measured.\n")
    os._exit(EXIT_INTERRUPTED)


def quit_on_interrupt() -> None:
    """Makes Ctrl-C end the process at once.

    While modules are imported, C code and dataclasses swallow KeyboardInterrupt or make another
    exception of it: of 40 interrupts during the import of NumPy, 13 ended in a traceback.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _quit)


def raise_on_interrupt() -> None:
    """Undoes quit_on_interrupt: from now on there is something to keep."""
    if signal.getsignal(signal.SIGINT) is _quit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
