"""Figures that follow from recorded ones."""

from collections.abc import Callable, Mapping

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


#: Group -> its figures from all records.
DERIVED: Mapping[str, Callable[[_Records], Mapping[str, float]]] = {
    "percent": _percent,
    "thousandth": _thousandth,
    "thousandfold": _thousandfold,
}
