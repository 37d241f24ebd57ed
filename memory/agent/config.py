"""Configuration of the learning agent."""

from dataclasses import dataclass

from hdl.config import ConfigurationError
from memory.timing import BURST_CLOCKS
from support.checks import Checks, shown

from .features import Feature, feature

#: Number of actions that an agent chooses from.
ACTIONS = 4
#: Most features of a state, and so most weights per action.
SLOTS = 8

_CHECK = Checks(ConfigurationError)
#: Bits of a weight besides its fraction and the exponent of 1 / (1 - gamma): sign and headroom.
_SPARE_BITS = 2
#: Fewest bits of a weight's fraction: the rewards of the longest epoch are parts of 1.
_FRACTION = 4


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """An agent of :mod:`memory.agent.sarsa`; used only by the policy "learned".

    Attributes:
        features: of a state, 1..8, each as :func:`memory.agent.features.feature` reads it.
        epoch: cycles from decision to decision; power of two, 4..64. A burst takes four, so there
            is nothing to gain from more frequent decisions, and an adder for two features suffices
            instead of one for all.
        alpha_shift: a decision changes weights by 2**-alpha_shift of the error; 3..8.
        gamma_shift: discount factor 1 - 2**-gamma_shift; 3..10.
        epsilon_shift: an action is random with a chance of 2**-epsilon_shift; 4..10.
        theta_bits: of a weight; 16..32, enough for a fraction of ``alpha_shift`` bits.
        seed: of the random numbers; 1..65535.

    Raises:
        ConfigurationError: a value outside its range.
    """

    features: tuple[str, ...] = (
        "reads",
        "writes",
        "hits",
        "other_hits",
        "rows",
        "run",
        "patience",
        "direction",
    )
    epoch: int = 8
    alpha_shift: int = 4
    gamma_shift: int = 4
    epsilon_shift: int = 6
    theta_bits: int = 16
    seed: int = 1

    def __post_init__(self) -> None:
        names = self.features
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"agent.features must be a tuple of names, not {shown(names)}")
        if not 1 <= len(names) <= SLOTS:
            raise ConfigurationError(f"agent.features must be 1 to {SLOTS}, not {len(names)}")
        _CHECK.power_of_two("agent.epoch", self.epoch, BURST_CLOCKS, 64)
        _CHECK.within("agent.alpha_shift", self.alpha_shift, 3, 8)
        _CHECK.within("agent.gamma_shift", self.gamma_shift, 3, 10)
        _CHECK.within("agent.epsilon_shift", self.epsilon_shift, 4, 10)
        least = max(16, self.gamma_shift + _SPARE_BITS + max(self.alpha_shift, _FRACTION))
        _CHECK.within("agent.theta_bits", self.theta_bits, least, 32)
        _CHECK.within("agent.seed", self.seed, 1, (1 << 16) - 1)
        chosen = [one.name for one in self.state]
        if len(set(chosen)) < len(chosen):
            raise ConfigurationError(f"agent.features must differ, not {shown(names)}")

    @property
    def state(self) -> tuple[Feature, ...]:
        """The features, with their thresholds."""
        return tuple(feature(text) for text in self.features)

    @property
    def lanes(self) -> int:
        """Features processed per cycle: 1 or 2, so that an epoch suffices for all."""
        return -(-len(self.features) // self.epoch)

    @property
    def steps(self) -> int:
        """Cycles to process all features."""
        return -(-len(self.features) // self.lanes)

    @property
    def update_lag(self) -> int:
        """Decisions until the weights learn from one: that needs the next action's value, which
        takes three cycles more than the steps."""
        return 2 if self.steps + 3 <= self.epoch else 3

    @property
    def fraction_bits(self) -> int:
        """Fraction bits of a weight. A value is at most 2**gamma_shift, as a reward is at most 1; a
        weight can hold twice that."""
        return self.theta_bits - self.gamma_shift - _SPARE_BITS

    @property
    def reward_shift(self) -> int:
        """A burst is worth 2**reward_shift in units of a weight's last bit, so an epoch without
        idle bus cycles is worth 1."""
        return self.fraction_bits - ((self.epoch // BURST_CLOCKS).bit_length() - 1)

    @property
    def initial(self) -> int:
        """Every weight after reset, in units of its last bit: together they give the largest value
        of an action, so every action gets tried."""
        return (1 << (self.gamma_shift + self.fraction_bits)) // len(self.features)
