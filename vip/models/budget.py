"""Maps of bytes as far as an error budget allows; the others keep 16 bits.

All maps that can be bytes are bytes at first. Then those where rounding adds most to the error, for
the cycles that bytes save, keep 16 bits. The golden model decides how many: it is run with half of
those in question, again and again.
"""

from collections.abc import Callable, Collection
from math import inf
from typing import NamedTuple

from microkernels.networks.plan import NetworkPlan
from microkernels.networks.stored import BYTE_BITS
from microkernels.onnx_models.calibrate import Calibrated
from microkernels.onnx_models.errors import ModelError
from pe.config import PAIRS
from vip.configurations import design

from .reference import OutputDeviation


class Trial(NamedTuple):
    """A model that is planned and calibrated.

    Attributes:
        plan: of its network. keep: every map keeps its memory.
        calibrated: on the data. outputs: beside onnxruntime's.
    """

    plan: NetworkPlan
    keep: bool
    calibrated: Calibrated
    outputs: tuple[OutputDeviation, ...]

    @property
    def error(self) -> float:
        """Of the worst output, in percent of its magnitude."""
        return 100 * max(output.error for output in self.outputs)


def check_budget(preset: str, budget: float | None) -> None:
    """Refuse a budget that makes no sense.

    Raises:
        ModelError: it is not above 0, or the engines do not multiply bytes.
    """
    if budget is None:
        return
    if not 0 < budget < inf:
        raise ModelError(f"a budget is a percentage above 0, not {budget:g}")
    if PAIRS not in design(preset).pe.instructions:
        raise ModelError(
            f"a budget is for engines that multiply bytes, but those of {preset} do not: "
            "vault-int8 and thesis-int8 do"
        )


def _added(trial: Trial) -> dict[str, float]:
    """Squared error that each layer adds to those of its sources."""
    errors = {report.layer: report.error**2 for report in trial.calibrated.maps}
    sources = trial.calibrated.model.network.sources
    return {
        name: max(
            0.0, error - max((errors.get(source, 0.0) for source in sources[name]), default=0)
        )
        for name, error in errors.items()
    }


def _noisy(trial: Trial, wide: Trial) -> list[set[str]]:
    """Sets of maps of bytes that have the same bits, those with the largest error per cycle that
    they save first: of layers that write them, and of those that multiply them by weights of bytes.

    Parameters:
        trial: with bytes. wide: with 16 bits.
    """
    network = trial.calibrated.model.network
    added, sets = _added(trial), network.equal_bits
    noise: dict[str, float] = {}
    saved: dict[str, float] = {}
    for name, error in added.items():
        cycles = wide.plan.layers[name].cycles - trial.plan.layers[name].cycles
        for group in {sets[name], *(sets[source] for source in network.sources[name])}:
            noise[group] = noise.get(group, 0.0) + error
            saved[group] = saved.get(group, 0.0) + cycles
    members: dict[str, set[str]] = {}
    for name, group in sets.items():
        if network.bits[name] == BYTE_BITS:
            members.setdefault(group, set()).add(name)
    rate = {group: noise.get(group, 0.0) / max(saved.get(group, 0.0), 1.0) for group in members}
    return [members[group] for group in sorted(members, key=rate.__getitem__, reverse=True)]


def within_budget(budget: float, bytes_: Trial, trial: Callable[[Collection[str]], Trial]) -> Trial:
    """A model with an error of at most ``budget`` percent, with 16 bits in few maps.

    Parameters:
        bytes_: the model with bytes wherever layers have them.
        trial: plans and calibrates the model with 16 bits in these maps.

    Raises:
        ModelError: 16 bits everywhere do not suffice; the message names the worst layer.
    """
    if bytes_.error <= budget:
        return bytes_
    best = trial(bytes_.calibrated.model.network.sizes)
    if best.error > budget:
        added = _added(best)
        worst = max(added, key=added.__getitem__)
        raise ModelError(
            f"a budget of {budget:g} % is too small: the error is {best.error:.2f} % with 16 bits, "
            f"{bytes_.error:.2f} % with bytes; layer {worst} adds most, "
            f"{100 * added[worst] ** 0.5:.2f} % of its map; give a larger budget, or calibration "
            "data of the range in use"
        )
    sets = _noisy(bytes_, best)
    too_few, enough = 0, len(sets)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        tried = trial(set().union(*sets[:middle]))
        if tried.error <= budget:
            enough, best = middle, tried
        else:
            too_few = middle
    return best
