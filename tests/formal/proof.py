"""Proofs of single units by ABC, for all inputs: for all times, or for some cycles.

A unit starts in the state after a reset. ``pdr`` (property directed reachability) finds an
invariant by itself, and then the proof has no bound on time; ``bmc3`` looks at some cycles.
"""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Fragment, Module, Signal, Value
from amaranth.lib import wiring

from hdl.yosys import run_yosys
from support.scratch import scratch_folder
from synth.formal.solve import run_abc

#: ABC ends without a verdict after so many seconds.
_SECONDS = 600


class Watch:
    """What is to be shown of a unit.

    Attributes:
        m: module beside the unit, for what watches it.
        first: 1 in the first cycle.
    """

    def __init__(self, m: Module) -> None:
        self.m = m
        self.free: list[Signal] = []
        self.first = Signal(init=1)
        m.d.sync += self.first.eq(0)
        self.assumed: list[Value] = []
        self.bad: list[Value] = []

    def assume(self, condition: Any) -> None:
        """Look only at runs in which ``condition`` is 1 in every cycle so far."""
        self.assumed.append(Value.cast(condition).bool())

    def never(self, condition: Any) -> None:
        """Show that ``condition`` is 0 in every cycle."""
        self.bad.append(Value.cast(condition).bool())

    def any(self, shape: Any) -> Signal:
        """A signal with any value in each cycle."""
        self.free.append(Signal(shape, name=f"any_{len(self.free)}"))
        return self.free[-1]

    def any_constant(self, shape: Any) -> Signal:
        """A signal with any value, which it has from the second cycle on; in the first it is 0."""
        value, any_value = Signal(shape), self.any(shape)
        with self.m.If(self.first):
            self.m.d.sync += value.eq(any_value)
        return value

    def before(self, value: Any, init: int = 0) -> Signal:
        """``value`` in the cycle before; ``init`` in the first."""
        before = Signal(Value.cast(value).shape(), init=init)
        self.m.d.sync += before.eq(value)
        return before


class _Watched(Elaboratable):
    def __init__(self, dut: Any, watch: Callable[[Any, Watch], None]) -> None:
        self._dut, self._watch = dut, watch
        self.bad = Signal()
        self.domain = ClockDomain("sync", reset_less=True)
        self.free: list[Signal] = []

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domain
        m.submodules.dut = dut = self._dut
        for path, member, signal in dut.signature.flatten(dut):
            if member.flow == wiring.In and len(Value.cast(signal)):
                free = Signal(len(Value.cast(signal)), name="free_" + "_".join(map(str, path)))
                self.free.append(free)
                m.d.comb += Value.cast(signal).eq(free)
        watch = Watch(m)
        self._watch(dut, watch)
        self.free += watch.free
        sound, still = Signal(), Signal(init=1)
        m.d.comb += [
            sound.eq(still & Cat(watch.assumed).all()),
            self.bad.eq(sound & Cat(watch.bad).any()),
        ]
        m.d.sync += still.eq(sound)
        return m


def proved(dut: Any, watch: Callable[[Any, Watch], None], *, cycles: int | None = None) -> bool:
    """Whether nothing that must never be is reached, at any time or in the first ``cycles``.

    Parameters:
        dut: a component, whose inputs have any values.
        watch: says of the component what is assumed and what must never be.
    """
    with scratch_folder("formal") as folder:
        _write(dut, watch, folder)
        script = f"pdr -T {_SECONDS}" if cycles is None else f"bmc3 -T {_SECONDS} -F {cycles}"
        said = run_abc(folder, f"read_aiger watched.aig; {script}")
    if re.search(r"Output \d+ .*was asserted in frame", said):
        return False
    holds = "Property proved" if cycles is None else f"No output asserted in {cycles} frames"
    assert holds in said, f"no verdict: {said[-300:]}"
    return True


#: Yosys commands that write a flat design with memories mapped as ``watched.aig``, from its reset.
TO_AIGER = (
    "opt -full",
    "techmap",
    "dfflegalize -cell $_DFF_P_ 01",
    "setundef -zero -init",
    "opt_clean",
    "aigmap",
    "write_aiger -zinit watched.aig",
)


def _write(dut: Any, watch: Callable[[Any, Watch], None], folder: Path) -> None:
    watched = _Watched(dut, watch)
    # The free inputs are known when it has been elaborated.
    fragment = Fragment.get(watched, None)
    ports = [watched.domain.clk, watched.bad, *watched.free]
    (folder / "watched.il").write_text(rtlil.convert(fragment, ports=ports), encoding="utf-8")
    commands = [
        "read_rtlil watched.il",
        "prep -flatten -top top",
        "memory_map",
        *TO_AIGER,
    ]
    run_yosys(commands, purpose="a proof", folder=folder)


def seeded(kind: type, old: str, new: str, part: Callable[..., Any] | None = None) -> Any:
    """The class ``kind`` from the text of its module in which ``old``, which occurs once, is
    replaced; or, with ``part``, a function that it imports, in the text of that one's module."""
    if part is None:
        return getattr(_module_of(kind, old, new), kind.__name__)
    module = _module_of(kind)
    setattr(module, part.__name__, getattr(_module_of(part, old, new), part.__name__))
    return getattr(module, kind.__name__)


def _module_of(thing: Callable[..., Any], old: str = "", new: str = "") -> ModuleType:
    """A copy of its module, with ``new`` in place of ``old``."""
    module = importlib.import_module(thing.__module__)
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    if old:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    copy = ModuleType(module.__name__)
    copy.__package__ = module.__package__
    exec(compile(text, module.__file__, "exec"), vars(copy))
    return copy
