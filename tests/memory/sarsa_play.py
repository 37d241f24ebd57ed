"""Random states and rewards for the agent, in Amaranth's simulator, beside its golden model."""

import random
from collections import deque

from memory.agent.config import AgentConfig
from memory.agent.sarsa import Sarsa
from tests.memory.sarsa_model import SarsaModel


class Player:
    """What an agent sees, cycle by cycle, and what its model answers.

    Rewards come where a data bus allows them, and oftener with some states than with others, so
    that there is something to learn.
    """

    def __init__(self, config: AgentConfig, seed: int) -> None:
        self.config = config
        self.model = SarsaModel(config)
        self.rng = random.Random(seed)
        self.cycle = 0
        self.decisions = 0
        self.state = (0,) * len(config.features)
        #: States taken that no decision is made for yet.
        self.sampled: deque[tuple[int, ...]] = deque()
        self.earned = 0
        self.busy = 0

    def step(self) -> tuple[bool, int, int | None]:
        """Whether there is a new state, the reward, and the action decided in this cycle."""
        config = self.config
        phase = (self.cycle - 1) % config.epoch
        new_state = phase == config.epoch - 1
        reward = self.busy == 0 and self.rng.random() < 0.2 + self.state[0] / 4
        self.busy = 3 if reward else max(0, self.busy - 1)
        self.earned += reward
        action = None
        if self.cycle > config.steps and (self.cycle - 1 - config.steps) % config.epoch == 0:
            action = self.model.decide(self.sampled.popleft(), self.earned)
            self.earned = 0
            self.decisions += 1
        if new_state:
            self.state = tuple(self.rng.randrange(len(one.thresholds) + 1) for one in config.state)
            self.sampled.append(self.state)
        self.cycle += 1
        return new_state, int(reward), action


def compare(simulate, config: AgentConfig, decisions: int, seed: int = 1) -> SarsaModel:
    """Play ``decisions``; every action must be that of the model. The model, at the end."""
    dut = Sarsa(config)
    player = Player(config, seed)

    async def bench(ctx):
        while player.decisions < decisions:
            new_state, reward, action = player.step()
            if new_state:
                for number, bucket in enumerate(player.state):
                    ctx.set(getattr(dut, f"state_{number}"), bucket)
            ctx.set(dut.reward, reward)
            await ctx.tick()
            if action is not None:
                assert ctx.get(dut.action) == 1 << action

    simulate(dut, bench)
    return player.model
