"""Figures that follow from recorded ones."""

from collections.abc import Callable, Mapping

from kernels.bp_problem import message_updates

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


def _tile(records: _Records) -> dict[str, float]:
    """Cycles of four vaults of four engines for 240 x 136 pixels, by a tile's cycles an update."""
    rate = records["kernels"]["bp_m_batch_1_cycles_per_update"]
    return {"updates_240x136": rate * message_updates(240, 136) / (4 * 4)}


#: Group -> its figures from all records.
DERIVED: Mapping[str, Callable[[_Records], Mapping[str, float]]] = {
    "percent": _percent,
    "thousandth": _thousandth,
    "tile": _tile,
    "thousandfold": _thousandfold,
}
