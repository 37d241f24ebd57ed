"""The scheduling policies of a vault."""

from collections.abc import Mapping
from typing import Any

from memory.config import SchedulerPolicy, VaultConfig

from .first_ready import FirstReady
from .in_order import InOrder
from .learned import Learned

#: Each takes a :class:`VaultConfig` and has the members of
#: :func:`memory.controller.scheduler.scheduler_members`.
SCHEDULERS: Mapping[SchedulerPolicy, Any] = {
    "first-ready": FirstReady,
    "in-order": InOrder,
    "first-ready-timed": FirstReady,
    "learned": Learned,
}


def make_scheduler(config: VaultConfig) -> Any:
    """The scheduler that ``config`` names."""
    return SCHEDULERS[config.scheduler](config)
