"""Golden model of the agent: SARSA with linear values, from its equations, in integers.

With features i of a state s in buckets v_i(s), weights theta and actions a::

    Q(s, a) = sum over i of theta[a][i] * 2**-v_i(s)
    delta   = r + (1 - 2**-gamma_shift) * Q(s', a') - Q(s, a)
    theta[a][i] += 2**-alpha_shift * delta * 2**-v_i(s)

Every product is a shift towards minus infinity of a whole number, every sum of a weight saturates.
As hardware needs some cycles for delta, the weights learn from a decision only
:attr:`memory.agent.config.AgentConfig.update_lag` decisions later.
"""

from collections.abc import Sequence

from memory.agent.config import ACTIONS, AgentConfig

#: The last action: issue no command. It never follows itself.
_NONE = ACTIONS - 1


class SarsaModel:
    """The agent, decision by decision.

    Attributes:
        theta: weights by action and feature, in units of their last bit.
        explored: decisions that were random. saturated: weights that would have left their range.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self.theta = [[config.initial for _ in config.features] for _ in range(ACTIONS)]
        self.explored = self.saturated = 0
        self._random = config.seed
        #: Decisions not yet learned from: state, action, value.
        self._open: list[tuple[tuple[int, ...], int, int]] = []
        self._deltas: list[int] = []

    def decide(self, state: Sequence[int], reward: int) -> int:
        """The action for ``state``.

        Parameters:
            state: bucket of each feature.
            reward: bursts that the previous action has earned.
        """
        config = self._config
        values = [
            sum(weight >> bucket for weight, bucket in zip(weights, state, strict=True))
            for weights in self.theta
        ]
        action = self._choose(values)
        value = values[action]
        if self._open:
            gain = (reward << config.reward_shift) + value - (value >> config.gamma_shift)
            self._deltas.append(gain - self._open[-1][2])
        self._learn()
        self._open.append((tuple(state), action, value))
        return action

    def _choose(self, values: Sequence[int]) -> int:
        """The first of the greatest values, or an action at random."""
        again = bool(self._open) and self._open[-1][1] == _NONE
        drawn = self._random >> 14
        explore = self._random % (1 << self._config.epsilon_shift) == 0
        for _ in range(16):
            bits = self._random
            new = (bits ^ bits >> 2 ^ bits >> 3 ^ bits >> 5) & 1
            self._random = bits >> 1 | new << 15
        if explore and not (again and drawn == _NONE):
            self.explored += 1
            return drawn
        allowed = range(_NONE if again else ACTIONS)
        return max(allowed, key=lambda action: (values[action], -action))

    def _learn(self) -> None:
        """Update the weights from the oldest decision, once it is due."""
        config = self._config
        if len(self._open) < config.update_lag:
            return
        state, action, _ = self._open.pop(0)
        delta = self._deltas.pop(0)
        limit = (1 << (config.theta_bits - 1)) - 1
        for number, bucket in enumerate(state):
            moved = self.theta[action][number] + (delta >> (config.alpha_shift + bucket))
            self.theta[action][number] = max(-limit - 1, min(limit, moved))
            self.saturated += moved != self.theta[action][number]
