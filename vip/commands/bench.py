"""``vip bench``: figures of the machine's parts, each command with a report of its own."""

import typer

from .bench_digits import digits
from .bench_kernels import kernels
from .bench_network import network
from .bench_stereo import stereo
from .bench_trim import trim
from .bench_vault import vault

__all__ = ["app"]

app = typer.Typer(
    help="Measure bandwidth, kernels, trimming and what they rest on.",
    no_args_is_help=True,
)
app.command()(vault)
app.command()(network)
app.command()(kernels)
app.command()(digits)
app.command()(stereo)
app.command()(trim)
