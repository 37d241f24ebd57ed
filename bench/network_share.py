"""``python -m bench.network_share``: time that the network adds to layers measured without it.

A model, not a measurement, and no bound. ``vip bench kernels`` runs one vault's part of a layer
with all data in its own memory. Here the bytes that a vault takes from other vaults are counted
from the shapes, and moved at the rates that random traffic with random back-pressure reached on 8 x
4 vaults (record ``network``). These transfers are counted on their own, as if none of them ran in
the shadow of the computation, although the kernels' loads run ahead. A vault receives for a layer:

- *halo*: pixels around its tile, from neighbours, where the map is cut;
- *inputs* that the previous layer left in other vaults, because it was partitioned differently:
  pixels of other channels or places (:data:`_MOVED`), inputs of the fully connected layers, and the
  LSTM's inputs and cells, which all vaults use (thesis 6.3, 6.4: there the state is broadcast);
- *sums*: partial sums of other vaults' channels or inputs (thesis 6.2, 6.3).

Every step ends with a barrier: all engines write a flag into one vault and read another one there.
Not included: transfers of a host, and patterns that load some links more than random traffic does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.table import Table

from hdl.ports import COLUMN_BYTES, COLUMN_WORDS
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import ELEMENT_BYTES
from microkernels.nn.lstm_plan import plan_lstm
from sim_tb.measure.lstm_ese import ESE
from sim_tb.measure.vgg import FULLY_CONNECTED, LAYERS, Layer
from soc.generate.presets import chip_preset

from .measurement import BenchError
from .record import values
from .terminal import console, run

__all__ = ["NetworkShare", "Rates", "network_shares", "read_rates"]

_CHIP = "thesis"
#: Flits: header and words of a column, and the one flit that requests or acknowledges it.
_COLUMN_FLITS = 1 + COLUMN_WORDS + 1
#: Flits of an access to a flag: header and word, and the answer.
_FLAG_FLITS = 3
#: Layers whose inputs the layer before left in other vaults -> pixels of the vault's tile, and
#: channels, that it takes from them; also the few that it happens to have itself.
_MOVED = {
    # Tiles of 14 x 7 pixels with 256 channels become tiles of 14 x 14 with half of them.
    "pool3": (14 * 7, 128),
    # Tiles of 7 x 7 with 128 channels become 14 x 7 with a quarter of all channels; then tiles of
    # 14 x 14 with 64 channels do.
    "conv4_1": (14 * 7, 64),
    "conv4_2": (14 * 7, 128),
    "conv4_3": (14 * 7, 128),
    # Whole maps with an eighth of the channels, from tiles of 7 x 7 with 64 channels, and then
    # from whole maps with 16.
    "conv5_1": (14 * 14, 64),
    "conv5_2": (14 * 14, 64),
    "conv5_3": (14 * 14, 64),
}
#: Layers whose maps are not cut by position: they are surrounded by zeros.
_WHOLE_MAPS = ("conv5_1", "conv5_2", "conv5_3")
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
    """The cost of the network for a layer.

    Attributes:
        name: of the layer, batch 1 (the LSTM: 32).
        near_bytes, far_bytes: that a vault receives from neighbours and from any vault.
        network_us: to move these bytes; barriers_us: of the barriers.
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
        """Additional time as a share of the layer's time, if no transfer is hidden."""
        return (self.network_us + self.barriers_us) / self.kernel_us


def read_rates(network: Mapping[str, float]) -> Rates:
    """The rates in the figures of the record ``network``.

    Raises:
        BenchError: it has no random traffic on the thesis's network.
    """
    chip = chip_preset(_CHIP).network
    names = [f"{chip.columns}x{chip.rows}_{kind}_answers" for kind in _KINDS]
    try:
        near, far, one = (
            network[f"{name}_flits"] / network[f"{name}_cycles"] / chip.vaults for name in names
        )
    except KeyError as error:
        raise BenchError(f"the record of the network lacks {error}") from None
    return Rates(neighbour=near, uniform=far, one=one)


def _columns(elements: int) -> int:
    """Bytes of the columns that hold ``elements`` elements."""
    return round_up(elements * ELEMENT_BYTES, COLUMN_BYTES)


def _received(layer: Layer) -> tuple[int, int]:
    """Bytes that a vault receives from neighbours and from any vault."""
    near = far = 0
    if layer.conv is not None and not layer.first and layer.name not in _WHOLE_MAPS:
        tile = layer.conv.out_width * layer.conv.out_height
        around = layer.conv.width * layer.conv.height - tile
        near += around * _columns(layer.conv.channels)
    if layer.name in _MOVED:
        pixels, channels = _MOVED[layer.name]
        far += pixels * _columns(channels)
    if layer.segments > 1 and layer.pool is not None and layer.conv is not None:
        # A vault has computed the sums of its own tile and segment itself, and receives all others.
        pixels = layer.pool.width * layer.pool.height
        own = min(pixels, layer.conv.out_width * layer.conv.out_height)
        far += (layer.segments * pixels - own) * _columns(layer.pool.channels)
    if layer.dense is not None:
        # One vault of each row adds the sums of all; it has the most to wait for.
        far += _columns(layer.dense.inputs) + (layer.segments - 1) * _columns(layer.dense.outputs)
    return near, far


def network_shares(rates: Rates, kernels: Mapping[str, float]) -> list[NetworkShare]:
    """The share of each layer that is measured on one vault.

    Parameters:
        kernels: figures of the record ``kernels``.

    Raises:
        BenchError: the record lacks a layer.
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
            raise BenchError(f"the record of the kernels lacks {key}")
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
    """Number of barriers, one after each step: three steps of a fully connected layer; two of a
    convolution whose channels are cut (sums and their completion); else one."""
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
        f"VGG-16: {alone:.2f} ms, with all of this {with_all:.2f}. {lstm.name}: "
        f"{lstm.kernel_us:.1f} us, with barriers {lstm.kernel_us + lstm.barriers_us:.1f}, with all "
        f"of this {lstm.kernel_us * (1 + lstm.added):.1f}."
    )


if __name__ == "__main__":
    run(main)
