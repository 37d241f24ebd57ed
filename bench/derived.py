"""Figures that follow from recorded ones."""

from collections.abc import Callable, Mapping

from microkernels.bp.problem import message_updates

from .measurement import BenchError
from .network_share import network_shares, read_rates

__all__ = ["DERIVED"]

#: Record -> figure -> value.
_Records = Mapping[str, Mapping[str, float]]


def _percent(records: _Records) -> dict[str, float]:
    """Recorded fractions in percent: ``record_figure``."""
    return {
        f"{record}_{name}": 100 * value
        for record, figures in records.items()
        for name, value in figures.items()
    }


def _thousandth(records: _Records) -> dict[str, float]:
    """Recorded figures divided by 1,000: ``record_figure``."""
    return {name: value / 100_000 for name, value in _percent(records).items()}


def _thousandfold(records: _Records) -> dict[str, float]:
    """Recorded figures times 1,000 (microseconds from milliseconds): ``record_figure``."""
    return {name: 10 * value for name, value in _percent(records).items()}


def _ms(records: _Records) -> dict[str, float]:
    """Recorded cycles in milliseconds at 1.25 GHz: ``record_figure``."""
    return {name: value / 100 * 0.8e-6 for name, value in _percent(records).items()}


def _tile(records: _Records) -> dict[str, float]:
    """Cycles of four vaults of four engines for 240 x 136 pixels, by a tile's cycles an update."""
    rate = records["kernels"]["bp_m_batch_1_cycles_per_update"]
    return {"updates_240x136": rate * message_updates(240, 136) / (4 * 4)}


def _network(records: _Records) -> dict[str, float]:
    """The model of :mod:`bench.network_share`, by layer and for the whole of VGG-16 and LSTM."""
    try:
        rates = read_rates(records["network"])
        shares = network_shares(rates, records["kernels"])
    except BenchError as error:
        raise KeyError(str(error)) from None
    found = {"near": rates.neighbour, "far": rates.uniform, "one": rates.one}
    for share in shares:
        found |= {
            f"{share.name}_near_kb": share.near_bytes / 1000,
            f"{share.name}_far_kb": share.far_bytes / 1000,
            f"{share.name}_us": share.network_us + share.barriers_us,
            f"{share.name}_percent": 100 * share.added,
        }
    *layers, lstm = shares
    alone = sum(share.kernel_us for share in layers) / 1000
    added = sum(share.network_us + share.barriers_us for share in layers) / 1000
    return found | {
        "vgg_alone_ms": alone,
        "vgg_ms": alone + added,
        "lstm_barriers_us": lstm.kernel_us + lstm.barriers_us,
        "lstm_all_us": lstm.kernel_us * (1 + lstm.added),
    }


#: Group -> its figures from all records.
DERIVED: Mapping[str, Callable[[_Records], Mapping[str, float]]] = {
    "model": _network,
    "ms": _ms,
    "percent": _percent,
    "thousandth": _thousandth,
    "tile": _tile,
    "thousandfold": _thousandfold,
}
