"""Figures that follow from recorded ones."""

from collections.abc import Callable, Mapping

from microkernels.bp.problem import message_updates

from .schedulers import ALL_MIXES, POLICIES

__all__ = ["DERIVED"]

#: Milliseconds of a cycle at 1.25 GHz.
_TCK_MS = 0.8e-6
#: Engines of the thesis's chip, and energy of a bit of its DRAM (thesis 7.3).
_ENGINES, _DRAM_PJ_A_BIT = 128, 10
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
    return {name: value / 100 * _TCK_MS for name, value in _percent(records).items()}


def _us(records: _Records) -> dict[str, float]:
    """Recorded cycles in microseconds at 1.25 GHz: ``record_figure``."""
    return {name: 1000 * value for name, value in _ms(records).items()}


def _tile(records: _Records) -> dict[str, float]:
    """Cycles of four vaults of four engines for 240 x 136 pixels, by a tile's cycles an update."""
    rate = records["kernels"]["bp_m_batch_1_cycles_per_update"]
    return {"updates_240x136": rate * message_updates(240, 136) / (4 * 4)}


def _vgg16(records: _Records) -> dict[str, float]:
    """VGG-16 on whole chips: milliseconds of the thesis's chip with the host's transfers, and of
    chips with fewer vaults the part of their speed that 32 vaults keep."""
    found, first = records["networks"], "vgg16_8x4_batch_1_ms"
    transfers = (found["image_cycles"] + found["result_cycles"]) * _TCK_MS
    figures = {"transfers_ms": transfers, "whole_ms": found[first] + transfers}
    for grid, vaults in (("8x4", 32), ("4x4", 16), ("4x2", 8), ("2x2", 4)):
        work = found[f"vgg16_{grid}_batch_1_ms"] * vaults
        figures[f"{grid}_efficiency"] = 100 * found["vgg16_2x2_batch_1_ms"] * 4 / work
    return figures


def _sequences(records: _Records) -> dict[str, float]:
    """LSTM of 128 cells: how many times faster four engines are than one."""
    found = records["sequences"]
    one = found["cells_128_one_engine_us"]
    return {
        "four_vaults": one / found["cells_128_four_vaults_us"],
        "one_vault": one / found["cells_128_one_vault_us"],
    }


def _comparison(records: _Records) -> dict[str, float]:
    """The thesis's chip beside the processor of the record: power of all engines and of the DRAM in
    W, energy of an iteration of BP-M and of VGG-16's engines in mJ, and how many times faster the
    chip is than the processor."""
    chip, work, mine = records["full_hd"], records["networks"], records["processors"]
    bp_ms, vgg_ms = chip["flat_fine_ms"], work["vgg16_8x4_batch_1_ms"]
    bp_w = _ENGINES * records["power"]["bp_mw_at_28_nm"] / 1e3
    conv_w = _ENGINES * records["power"]["conv_mw_at_28_nm"] / 1e3
    dram_w = chip["flat_fine_gb_s"] * 8 * _DRAM_PJ_A_BIT / 1e3
    return {
        "bp_w": bp_w,
        "dram_w": dram_w,
        "bp_mj": (bp_w + dram_w) * bp_ms,
        "conv_w": conv_w,
        "vgg16_mj": conv_w * vgg_ms,
        "bp_one_core": mine["bp_one_core_ms"] / bp_ms,
        "bp_all_cores": mine["bp_all_cores_ms"] / bp_ms,
        "vgg16_one_core": mine["vgg16_one_core_ms"] / vgg_ms,
        "vgg16_all_cores": mine["vgg16_all_cores_ms"] / vgg_ms,
    }


def _fit_gain(records: _Records) -> dict[str, float]:
    """Mean of the gains of the applications that fill a device."""
    gains = [value for name, value in records["fit"].items() if name.endswith("_proved_gain")]
    return {"mean": sum(gains) / len(gains)}


def _policies(records: _Records) -> dict[str, float]:
    """By scheduling policy, and for the agent that a search found ("winner") in place of "learned",
    in percent: mixes on which no more than one other policy moves more (``_second``), the most and
    the least by which it moves more than "first-ready-timed", and by how much more than "in-order"
    in the mean."""
    moved = {
        policy.replace("-", "_"): [
            records["schedulers"][f"{policy.replace('-', '_')}_{mix}_gbs"] for mix in ALL_MIXES
        ]
        for policy in POLICIES
    }
    winner = [records["agents"][f"winner_1_{mix}_gbs"] for mix in ALL_MIXES]
    found = {}
    for name, values in (*moved.items(), ("winner", winner)):
        others = moved if name != "winner" else {k: v for k, v in moved.items() if k != "learned"}
        above = [
            sum(other[place] > value for other in others.values())
            for place, value in enumerate(values)
        ]
        found[f"{name}_second"] = 100 * sum(count <= 1 for count in above) / len(above)
        beside = [
            100 * (a / b - 1) for a, b in zip(values, moved["first_ready_timed"], strict=True)
        ]
        found |= {f"{name}_most": max(beside), f"{name}_least": min(beside)}
        ratios = [a / b for a, b in zip(values, moved["in_order"], strict=True)]
        found[f"{name}_over_in_order"] = 100 * (sum(ratios) / len(ratios) - 1)
    return found


#: Group -> its figures from all records.
DERIVED: Mapping[str, Callable[[_Records], Mapping[str, float]]] = {
    "comparison": _comparison,
    "ms": _ms,
    "us": _us,
    "percent": _percent,
    "policies": _policies,
    "thousandth": _thousandth,
    "tile": _tile,
    "thousandfold": _thousandfold,
    "vgg16": _vgg16,
    "speedup": _sequences,
    "fit_gain": _fit_gain,
}
