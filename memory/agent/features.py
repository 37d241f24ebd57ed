"""An agent's view of its vault: features of a state, and the thresholds of their buckets."""

from collections.abc import Mapping
from dataclasses import dataclass

from hdl.config import ConfigurationError
from support.checks import shown

#: Most buckets of a feature.
BUCKETS = (2, 4, 8)
#: Largest threshold.
_MOST = 1 << 16

#: Name of each feature -> its default thresholds.
FEATURES: Mapping[str, tuple[int, ...]] = {
    # Banks whose next request is a read; a write.
    "reads": (2, 4, 8),
    "writes": (1, 4, 8),
    # Banks whose next request is for the open row, in the current direction; in the other one.
    "hits": (1, 2, 4),
    "other_hits": (1, 2, 4),
    # Banks that offer ACT or PRE.
    "rows": (1, 2, 4),
    # Bursts since the last change of direction, at most 16.
    "run": (4, 8, 16),
    # Cycles for which the transaction queue's oldest request has been the oldest, at most 256.
    "patience": (32, 64, 128),
    # 1 while the data bus writes.
    "direction": (1,),
    # Requests in the transaction queue.
    "queue": (4, 8, 16),
    # Banks with a request.
    "waiting": (2, 4, 8),
    # Cycles since the last snapshot of waiting banks (:mod:`memory.controller.starvation`).
    "sweep": (64, 128, 256),
}


@dataclass(frozen=True)
class Feature:
    """A feature of a state. Its bucket is the number of thresholds reached.

    Attributes:
        name: key of :data:`FEATURES`.
        thresholds: increasing; one, three or seven.
    """

    name: str
    thresholds: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Bits of a bucket's number."""
        return len(self.thresholds).bit_length()

    def bucket(self, value: int) -> int:
        """The bucket of ``value``."""
        return sum(value >= threshold for threshold in self.thresholds)


def feature(text: str) -> Feature:
    """The feature that ``text`` names: a name, or a name and thresholds, as in ``"reads:1,4,8"``.

    Raises:
        ConfigurationError: an unknown name, or thresholds that are not 1, 3 or 7 rising whole
            numbers from 1 on.
    """
    name, colon, numbers = text.partition(":")
    if name not in FEATURES:
        raise ConfigurationError(
            f"agent.features: there is no feature {shown(name)}; there are: {', '.join(FEATURES)}"
        )
    if not colon:
        return Feature(name, FEATURES[name])
    words = numbers.split(",")
    if not all(word.isascii() and word.isdecimal() and len(word) < 8 for word in words):
        raise ConfigurationError(
            f"agent.features: thresholds are whole numbers separated by commas, not {shown(text)}"
        )
    thresholds = tuple(map(int, words))
    if len(thresholds) + 1 not in BUCKETS:
        raise ConfigurationError(
            f"agent.features: {name} must have 1, 3 or 7 thresholds (2, 4 or 8 buckets), "
            f"not {len(thresholds)}"
        )
    if sorted({0, *thresholds}) != [0, *thresholds] or thresholds[-1] > _MOST:
        raise ConfigurationError(
            f"agent.features: thresholds of {name} must rise, from 1 to {_MOST} at most, "
            f"not {shown(numbers)}"
        )
    return Feature(name, thresholds)
