"""The agent: SARSA with linear values, in which products are shifts."""

import itertools
from functools import reduce
from operator import xor
from typing import NamedTuple

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from memory.timing import BURST_CLOCKS

from .config import ACTIONS, AgentConfig

_NONE = ACTIONS - 1
#: Bits of the linear feedback shift register that supplies random numbers.
_RANDOM_BITS = 16
#: Its taps, whose sum enters at the top; the period is 2**16 - 1.
_TAPS = (0, 2, 3, 5)


class _Step(NamedTuple):
    """The agent's position in its epoch.

    Attributes:
        first, last: the epoch's first and last cycle.
        active: features are being processed.
        number: which ones.
    """

    first: Value
    last: Value
    active: Value
    number: Signal


class Sarsa(Component):
    """Selects an action in each epoch, and learns from the bursts that follow
    (`tests/memory/sarsa_model.py` has the equations).

    In the first cycles of an epoch the weights pass by, one feature or two a cycle: shifted by
    their bucket they add up to the value of each action, and those of an action that is known to be
    better or worse than its value are changed on the way. The next cycle selects the action; the
    error of the one before is known one later.

    Members:
        state_N (in): bucket of feature N, for each; taken in the last cycle of an epoch.
        reward (in, 1): a burst begins; once in four cycles at most.
        action (out, ACTIONS): the present action, one bit.
        begins (out, 1): it is the action's first cycle.
    """

    def __init__(self, config: AgentConfig) -> None:
        self.config = config
        super().__init__(
            {
                **{
                    f"state_{number}": In(feature.bits)
                    for number, feature in enumerate(config.state)
                },
                "reward": In(1),
                "action": Out(ACTIONS),
                "begins": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        # The first state is taken in the first cycle, which belongs to no epoch.
        phase = Signal(range(config.epoch), init=config.epoch - 1)
        begun = Signal()
        m.d.sync += [phase.eq(phase + 1), begun.eq(1)]
        step = _Step(
            first=phase == 0,
            last=phase == config.epoch - 1,
            active=begun & (phase < config.steps),
            number=phase,
        )
        present = Signal(ACTIONS, init=1)
        m.d.comb += self.action.eq(present)
        error = Signal(signed(self._value_bits + 2))
        learning = Signal(ACTIONS)
        values = [
            Signal(signed(self._value_bits), name=f"value_{number}") for number in range(ACTIONS)
        ]
        terms: list[list[Value]] = [[] for _ in range(ACTIONS)]
        for lane in range(config.lanes):
            current, past = self._buckets(m, lane, step)
            rings = self._lane(m, lane, step, past, error, learning)
            for number, head in enumerate(rings):
                terms[number].append(head >> current)
        for number, value in enumerate(values):
            with m.If(step.active):
                m.d.sync += value.eq(Mux(step.first, 0, value) + sum(terms[number]))
        self._decide(m, step, values, present, error, learning)
        return m

    @property
    def _value_bits(self) -> int:
        """Bits of the sum of all weights of an action."""
        return self.config.theta_bits + (len(self.config.features) - 1).bit_length()

    def _buckets(self, m: Module, lane: int, step: _Step) -> tuple[Value, Value]:
        """The bucket of this step's feature, now and ``update_lag`` decisions ago."""
        config = self.config
        mine = range(lane, len(config.features), config.lanes)
        bits = max(config.state[number].bits for number in mine)
        line = [
            Signal(bits, name=f"bucket_{lane}_{place}")
            for place in range((1 + config.update_lag) * config.steps)
        ]
        # The line moves a place a step: from its end the present state leaves first, and enters
        # the part for past ones.
        present, past = line[: config.steps], line[config.steps :]
        with m.If(step.active):
            m.d.sync += [place.eq(before) for place, before in itertools.pairwise(present)]
            m.d.sync += past[0].eq(present[0])
            m.d.sync += [place.eq(before) for place, before in zip(past[1:], past, strict=False)]
        with m.If(step.last):
            m.d.sync += [
                place.eq(getattr(self, f"state_{number}"))
                for place, number in zip(present, mine, strict=False)
            ]
        return present[0], past[-1]

    def _lane(
        self,
        m: Module,
        lane: int,
        step: _Step,
        bucket: Value,
        error: Signal,
        learning: Signal,
    ) -> list[Signal]:
        """The weights of every ``lanes``-th feature, which turn in a ring for each action; those at
        the heads. The weight at the head of the action ``learning`` moves by the error."""
        config = self.config
        bits = config.theta_bits
        count = len(range(lane, len(config.features), config.lanes))
        rings = [
            [
                Signal(
                    signed(bits),
                    init=config.initial if place < count else 0,
                    name=f"theta_{number}_{lane}_{place}",
                )
                for place in range(config.steps)
            ]
            for number in range(ACTIONS)
        ]
        old = Signal(signed(bits), name=f"old_{lane}")
        new = Signal(signed(bits), name=f"new_{lane}")
        for number, ring in enumerate(rings):
            with m.If(learning[number]):
                m.d.comb += old.eq(ring[0])
        sum_of_both = old + (error >> config.alpha_shift >> bucket)
        moved = Signal(sum_of_both.shape(), name=f"moved_{lane}")
        # Weights saturate.
        overflow = moved[bits - 1 :].any() & ~moved[bits - 1 :].all()
        largest = Cat((~moved[-1]).replicate(bits - 1), moved[-1])
        m.d.comb += [moved.eq(sum_of_both), new.eq(Mux(overflow, largest, moved[:bits]))]
        if count < config.steps:
            # In the last step this lane has no feature.
            with m.If(step.number == config.steps - 1):
                m.d.comb += new.eq(0)
        for number, ring in enumerate(rings):
            with m.If(step.active):
                m.d.sync += [place.eq(after) for place, after in itertools.pairwise(ring)]
                m.d.sync += ring[-1].eq(Mux(learning[number], new, ring[0]))
        return [ring[0] for ring in rings]

    def _decide(
        self,
        m: Module,
        step: _Step,
        values: list[Signal],
        present: Signal,
        error: Signal,
        learning: Signal,
    ) -> None:
        """The ``present`` action, and the error of the one before, ready for the next epoch."""
        config = self.config
        decides, decided = Signal(), Signal()
        random = Signal(_RANDOM_BITS, init=config.seed)
        m.d.sync += [
            decides.eq(step.active & (step.number == config.steps - 1)),
            decided.eq(decides),
        ]
        m.d.comb += self.begins.eq(decided)

        choice = self._choice(m, values, random)
        value = Signal.like(values[0], name="value")
        before = Signal.like(value)
        chosen_value = Signal.like(value)
        for number, one in enumerate(values):
            with m.If(choice[number]):
                m.d.comb += chosen_value.eq(one)
        bursts = Signal(range(config.epoch // BURST_CLOCKS + 1))
        earned = Signal.like(bursts)
        total = Signal.like(bursts)
        comparable, compared = Signal(), Signal()
        previous = Signal(ACTIONS)
        m.d.comb += total.eq(bursts + self.reward)
        m.d.sync += bursts.eq(total)
        with m.If(decides):
            m.d.sync += [
                present.eq(choice),
                previous.eq(self.action),
                value.eq(chosen_value),
                before.eq(value),
                earned.eq(total),
                bursts.eq(0),
                comparable.eq(1),
                compared.eq(comparable),
                random.eq(_after_steps(random)),
            ]
        best = Signal.like(error)
        best_action = Signal.like(learning)
        with m.If(decided & compared):
            m.d.sync += [
                best.eq(
                    (earned << config.reward_shift)
                    + (value - (value >> config.gamma_shift))
                    - before
                ),
                best_action.eq(previous),
            ]
        with m.If(step.last):
            m.d.sync += [error.eq(best), learning.eq(best_action)]

    def _choice(self, m: Module, values: list[Signal], random: Signal) -> Signal:
        """The first of the greatest values, or an action at random, as one bit. The last action is
        barred if it is the present one."""
        barred = self.action[_NONE]
        second_low, second_high, high = Signal(), Signal(), Signal()
        best_low, best_high = Signal.like(values[0]), Signal.like(values[0])
        m.d.comb += [
            second_low.eq(values[1] > values[0]),
            second_high.eq((values[3] > values[2]) & ~barred),
            best_low.eq(Mux(second_low, values[1], values[0])),
            best_high.eq(Mux(second_high, values[3], values[2])),
            high.eq(best_high > best_low),
        ]
        drawn = random[-2:]
        explore = Signal()
        m.d.comb += explore.eq(
            ~random[: self.config.epsilon_shift].any() & ~(barred & (drawn == _NONE))
        )
        number = Signal(2)
        choice = Signal(ACTIONS)
        best = Cat(Mux(high, second_high, second_low), high)
        m.d.comb += [number.eq(Mux(explore, drawn, best)), choice.eq(1 << number)]
        return choice


def _after_steps(state: Signal) -> Value:
    """The register after as many steps as it has bits, so all bits are new."""
    # Which bits of ``state`` each bit is the sum of.
    bits = [frozenset({number}) for number in range(_RANDOM_BITS)]
    for _ in range(_RANDOM_BITS):
        new: frozenset[int] = frozenset()
        for tap in _TAPS:
            new ^= bits[tap]
        bits = [*bits[1:], new]
    return Cat(reduce(xor, (state[number] for number in sorted(bit))) for bit in bits)
