"""`nnbt sign-helper`, and the text of `nnbt info ane`."""

import sys

import click

from nnbt.cli import EXIT_FAILED


@click.command(name="sign-helper")
@click.option("--undo", is_flag=True, help="Remove the signed copy.")
@click.pass_context
def sign_helper(ctx: click.Context, /, *, undo: bool) -> None:
    """Sign a copy of the helper so that it may read the Neural Engine's counters.

    The installed helper does not change. Prints what else the counters need, what that costs, and
    how to undo it. Exits with 1 if the copy cannot read the counters yet.
    """
    from nnbt.engines.mpsgraph import signing
    from nnbt.terminal.stream import terminal_width, wrapped

    if undo:
        removed = signing.undo()
        click.echo("\n".join(f"removed {path}" for path in removed) or "there is no signed copy")
        return
    signed = signing.sign()
    detail = f" ({signed.detail})" if signed.detail else ""
    paragraphs = [
        f"signed {signed.path} with {signing.ENTITLEMENT}; the installed helper is unchanged",
        f"selftest of the copy: {signed.status}: {signed.sentence}{detail}",
    ]
    if signed.status != "ok":
        paragraphs += signing.CONSEQUENCES
    width = terminal_width(sys.stdout)
    click.echo("\n".join(line for text in paragraphs for line in wrapped(text, width)))
    if signed.status != "ok":
        ctx.exit(EXIT_FAILED)
