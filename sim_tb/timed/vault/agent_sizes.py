"""Parameters of the timing model of a vault's agent, and the constants that it is compiled with."""

import ctypes
from collections.abc import Mapping
from ctypes import c_uint64

from memory.agent.config import ACTIONS, SLOTS, AgentConfig
from memory.agent.features import BUCKETS, FEATURES
from memory.controller.meta import SHORT_BURSTS
from memory.controller.snapshot import SNAPSHOT_CYCLES

__all__ = ["AgentSizes", "agent_constants"]

_THRESHOLDS = max(BUCKETS) - 1
#: A threshold that no value reaches.
_NEVER = 1 << 40
#: Names of the fields, and of the configuration's attributes.
_NUMBERS = (
    *("epoch", "steps", "update_lag", "alpha_shift", "gamma_shift", "epsilon_shift"),
    *("theta_bits", "reward_shift", "initial", "seed"),
)


class AgentSizes(ctypes.Structure):
    """Parameters of an agent; see ``agent.h``."""

    _fields_ = (
        ("features", c_uint64),
        *((name, c_uint64) for name in _NUMBERS),
        ("values", c_uint64 * SLOTS),
        ("thresholds", c_uint64 * _THRESHOLDS * SLOTS),
    )

    @classmethod
    def of(cls, config: AgentConfig) -> "AgentSizes":
        """Those of ``config``, whose weights the model's host can't access."""
        numbers = {name: getattr(config, name) for name in _NUMBERS}
        found = cls(features=len(config.features), **numbers)
        order = list(FEATURES)
        for number, feature in enumerate(config.state):
            found.values[number] = order.index(feature.name)
            padding = (_THRESHOLDS - len(feature.thresholds)) * (_NEVER,)
            for place, threshold in enumerate((*feature.thresholds, *padding)):
                found.thresholds[number][place] = threshold
        return found


def agent_constants() -> Mapping[str, int]:
    """Sizes of an agent, limits of its scheduler, and the numbers of the values that it may see."""
    values = {
        f"Feature{name.title().replace('_', '')}": place for place, name in enumerate(FEATURES)
    }
    return values | {
        "AgentActions": ACTIONS,
        "AgentSlots": SLOTS,
        "AgentThresholds": _THRESHOLDS,
        "FeatureValues": len(FEATURES),
        "SweepCycles": SNAPSHOT_CYCLES,
        "ShortBursts": SHORT_BURSTS,
    }
