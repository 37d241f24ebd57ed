"""``vip bench``: figures of the machine's parts, each command with a report of its own."""

from typing import ClassVar

import typer

from vip.cli.lazy import CommandEntry, LazyGroup

__all__ = ["app"]


class Benches(LazyGroup):
    """The benches."""

    entries: ClassVar[dict[str, CommandEntry]] = {
        "vault": CommandEntry(
            "bench.vault",
            "vault",
            "Bandwidth and latency of a vault's memory, and of the variants of thesis section "
            "7.2.3.",
        ),
        "network": CommandEntry(
            "bench.network",
            "network",
            "Random traffic with back-pressure through networks of several sizes; latency over "
            "rate.",
        ),
        "kernels": CommandEntry(
            "bench.kernels",
            "kernels",
            "BP-M, layers of VGG-16, an LSTM: a tile of each on a vault with DRAM timing, outputs "
            "checked.",
        ),
        "networks": CommandEntry(
            "bench.networks",
            "networks",
            "A whole network on all engines of a chip, layer by layer; every activation is "
            "checked.",
        ),
        "digits": CommandEntry(
            "bench.digits",
            "digits",
            "A CNN and an MLP for handwritten digits: accuracy in floating point and on the "
            "engine.",
        ),
        "stereo": CommandEntry(
            "bench.stereo",
            "stereo",
            "Hierarchical BP-M on the Motorcycle pair: disparities, and their error against the "
            "truth.",
        ),
        "trim": CommandEntry(
            "bench.trim",
            "trim",
            "Trim engines to each application, and to unions of some: area, power, cycles and "
            "results.",
        ),
        "random": CommandEntry(
            "bench.random",
            "random",
            "Random programs on the Verilog of an engine and on the simulator: all that they "
            "leave.",
        ),
    }


app = typer.Typer(
    cls=Benches,
    help="Measure bandwidth, kernels, trimming and what they rest on.",
    no_args_is_help=True,
)
