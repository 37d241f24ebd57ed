"""``python -m bench.network_share``: what the network adds to layers that are measured without it.

A model, not a measurement. ``vip bench kernels`` runs one vault's part of a layer with all data in
its own memory. Here the bytes that come from other vaults are counted from the shapes, and moved at
the rates that random traffic with random back-pressure reached on 8 x 4 vaults
(``bench/results/network.json``), by themselves: as if nothing of it lay in the shadow of the
computation, where the kernels' loads run ahead. What is sent:

- *halo*: pixels around a tile of a convolution, from neighbours;
- *sums*: partial sums of other vaults' channels or inputs (thesis 6.2, 6.3);
- *outputs* of layers whose channels are cut, written to every vault that needs them;
- *inputs* of the fully connected layers and of the LSTM, read by all vaults that use them
  (thesis 6.3, 6.4: there the state is broadcast).

Every step ends with a barrier: all engines write a flag into one vault and read another one there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import typer
from rich.table import Table

from hdl.ports import COLUMN_BYTES, COLUMN_WORDS
from kernels.feature_map import round_up
from kernels.fixed_point import ELEMENT_BYTES
from kernels.lstm_plan import plan_lstm
from sim_tb.lstm_ese import ESE
from sim_tb.vgg import FULLY_CONNECTED, LAYERS, Layer
from soc.presets import chip_preset
from vip.console import console
from vip.errors import UserError, run_command

from .record import values

__all__ = ["NetworkShare", "Rates", "network_shares", "read_rates"]

_CHIP = "thesis"
#: Header and words of a column, and the one flit that asks for it or acknowledges it.
_COLUMN_FLITS = 1 + COLUMN_WORDS + 1
#: Flits of an access to a flag: header and word, and the answer.
_FLAG_FLITS = 3
#: Filters of conv5_x are cut over so many groups of vaults, each of which needs all inputs.
_CONV5_GROUPS = 4
_LSTM_BARRIERS = 2
#: Traffic: to neighbours, to any vault, to one.
_KINDS = ("neighbour", "uniform", "hot_spot")


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Flits of requests and answers, a cycle and vault: to neighbours, to any vault, and to one."""

    neighbour: float
    uniform: float
    one: float


@dataclass(frozen=True, kw_only=True)
class NetworkShare:
    """What the network costs a layer.

    Attributes:
        name: of the layer, batch 1 (the LSTM: 32).
        near_bytes, far_bytes: that a vault receives from neighbours and from any vault.
        network_us: to move them; barriers_us: to wait for each other.
        kernel_us: of the layer without both, as recorded.
    """

    name: str
    near_bytes: int
    far_bytes: int
    network_us: float
    barriers_us: float
    kernel_us: float

    @property
    def added(self) -> float:
        """Share of the layer's time that comes on top if nothing is hidden."""
        return (self.network_us + self.barriers_us) / self.kernel_us


def read_rates(network: Mapping[str, float]) -> Rates:
    """The rates in the figures of the record ``network``.

    Raises:
        UserError: it has no random traffic on the thesis's network.
    """
    chip = chip_preset(_CHIP).network
    names = [f"{chip.columns}x{chip.rows}_{kind}_answers" for kind in _KINDS]
    try:
        near, far, one = (
            network[f"{name}_flits"] / network[f"{name}_cycles"] / chip.vaults for name in names
        )
    except KeyError as error:
        raise UserError(f"the record of the network lacks {error}") from None
    return Rates(neighbour=near, uniform=far, one=one)


def _columns(elements: int) -> int:
    """Bytes of the columns that hold so many elements."""
    return round_up(elements * ELEMENT_BYTES, COLUMN_BYTES)


def _received(layer: Layer) -> tuple[int, int]:
    """Bytes that a vault receives from neighbours and from any vault."""
    near = far = 0
    if layer.conv is not None and not layer.first:
        tile = layer.conv.out_width * layer.conv.out_height
        around = layer.conv.width * layer.conv.height - tile
        near += around * _columns(layer.conv.channels)
    if layer.segments > 1 and layer.pool is not None:
        pixels = layer.pool.width * layer.pool.height
        far += (layer.segments - 1) * pixels * _columns(layer.pool.channels)
        groups = _CONV5_GROUPS if layer.name.startswith("conv5") else 1
        far += groups * layer.pool.out_width * layer.pool.out_height * _columns(layer.pool.channels)
    if layer.dense is not None:
        # One vault of each row adds the sums of all; it has the most to wait for.
        far += _columns(layer.dense.inputs) + (layer.segments - 1) * _columns(layer.dense.outputs)
    return near, far


def network_shares(rates: Rates, kernels: Mapping[str, float]) -> list[NetworkShare]:
    """The share of each layer that is measured on one vault.

    Parameters:
        kernels: figures of the record ``kernels``.

    Raises:
        UserError: the record lacks a layer.
    """
    chip = chip_preset(_CHIP)
    plan = plan_lstm(ESE, vaults=chip.network.vaults, sharers=chip.tile.pes)
    cut = plan.cut
    chunks = plan.groups * cut.input_chunks + plan.output_groups * cut.cell_chunks
    lstm = ESE.batch * _columns(chunks * cut.chunk)
    parts = [(layer.name, 1, *_received(layer), _barriers(layer)) for layer in LAYERS]
    parts.append(("lstm", ESE.batch, 0, lstm, _LSTM_BARRIERS))
    found = []
    for name, batch, near, far, barriers in parts:
        key = f"{name}_batch_{batch}"
        if key not in kernels:
            raise UserError(f"the record of the kernels lacks {key}")
        flits = [held / COLUMN_BYTES * _COLUMN_FLITS for held in (near, far)]
        found.append(
            NetworkShare(
                name=name,
                near_bytes=near,
                far_bytes=far,
                network_us=_microseconds(flits[0] / rates.neighbour + flits[1] / rates.uniform),
                barriers_us=barriers * _barrier_us(rates),
                kernel_us=1000 * kernels[key],
            )
        )
    return found


def _barriers(layer: Layer) -> int:
    """A barrier behind each step: the three of a fully connected layer, sums and their completion
    of a convolution whose channels are cut, or one."""
    if layer in FULLY_CONNECTED:
        return 3
    return 2 if layer.segments > 1 else 1


def _barrier_us(rates: Rates) -> float:
    chip = chip_preset(_CHIP)
    accesses = 2 * chip.tile.pes
    return _microseconds(accesses * _FLAG_FLITS / rates.one)


def _microseconds(cycles: float) -> float:
    return cycles * chip_preset(_CHIP).tile.dram.timing.tck_ns / 1000


def main() -> None:
    """Print what the network would add to each recorded layer, if nothing of it were hidden.

    Example: python -m bench.network_share
    """
    rates = read_rates(values("network"))
    shares = network_shares(rates, values("kernels"))
    table = Table(title="A model: the network by itself, microseconds", show_lines=False)
    table.add_column("layer")
    for column in ("KB from neighbours", "KB from others", "moving", "barriers", "layer", "added"):
        table.add_column(column, justify="right")
    for share in shares:
        table.add_row(
            share.name,
            f"{share.near_bytes / 1000:.1f}",
            f"{share.far_bytes / 1000:.1f}",
            f"{share.network_us:.1f}",
            f"{share.barriers_us:.1f}",
            f"{share.kernel_us:,.1f}",
            f"{share.added:.1%}",
        )
    console.print(table)
    *layers, lstm = shares
    alone = sum(share.kernel_us for share in layers) / 1000
    with_all = alone + sum(share.network_us + share.barriers_us for share in layers) / 1000
    console.print(
        f"Flits a cycle and vault: {rates.neighbour:.3f} to neighbours, {rates.uniform:.3f} to any "
        f"vault, {rates.one:.3f} to one.\n"
        f"VGG-16: {alone:.2f} ms, with all of the network {with_all:.2f}. {lstm.name}: "
        f"{lstm.kernel_us:.1f} us, with barriers {lstm.kernel_us + lstm.barriers_us:.1f}, with all "
        f"of the network {lstm.kernel_us * (1 + lstm.added):.1f}."
    )


if __name__ == "__main__":
    run_command(lambda: typer.run(main))
