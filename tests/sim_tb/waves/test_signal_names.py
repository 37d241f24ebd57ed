"""Signals of a design that simulations name in text: each is in the Verilog that is emitted."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sim_tb
from sim_tb.harness.engine import WATCH_CONTROL
from sim_tb.waves.pipeline import SIGNALS
from sim_tb.waves.saved import _GROUPS
from sim_tb.waves.trace_events import SIGNALS as VAULT_SIGNALS
from soc.generate.generate import verilog
from soc.generate.presets import PRESETS

WATCH = Path(sim_tb.__file__).parent / "models" / "pe_watch.sv"
DECLARATION = re.compile(
    r"^ +(?:input|output|reg|wire) (?:reg |signed )*(?:\[.*?\] )?\\?(\w+)", re.M
)
INSTANCE = re.compile(r"^ +(\w+) (\w+) \($", re.M)


class Hierarchy:
    """The modules of a design: signals of each, and the parts that each instantiates, by name."""

    def __init__(self, modules: dict[str, str]) -> None:
        self.signals: dict[str, set[str]] = {}
        self.parts: dict[str, dict[str, str]] = {}
        for text in re.split(r"^(?=module )", "".join(modules.values()), flags=re.M)[1:]:
            name = text.split("(")[0].split()[1]
            self.signals[name] = set(DECLARATION.findall(text))
            self.parts[name] = {part: module for module, part in INSTANCE.findall(text)}

    def below(self, module: str, scope: str = "") -> Iterator[str]:
        """Scopes below ``module`` with their signals, as ``unit.signal``."""
        yield from (scope + signal for signal in self.signals.get(module, ()))
        for part, kind in self.parts.get(module, {}).items():
            yield f"{scope}{part}"
            yield from self.below(kind, f"{scope}{part}.")


@pytest.fixture(scope="module")
def chip() -> Hierarchy:
    """A chip whose engines, vaults and routers have everything that waveforms are searched for."""
    return Hierarchy(dict(verilog(PRESETS["tiny"]).modules))


def test_waveforms_are_followed_by_signals_of_the_engine(chip: Hierarchy) -> None:
    assert {*SIGNALS} <= {*chip.below("pe")}


def test_saved_views_group_units_of_the_engine(chip: Hierarchy) -> None:
    assert {scope for scopes in _GROUPS.values() for scope in scopes} <= {*chip.below("pe")}


def test_waveforms_are_followed_by_signals_of_the_vault_and_the_router(chip: Hierarchy) -> None:
    assert {*VAULT_SIGNALS, "bank_0.queue.level"} <= {*chip.below("controller")}
    links = {f"router.{side}_out__valid" for side in ("east", "west", "north", "south")}
    assert links <= {*chip.below("node")}


def test_a_watched_engine_is_watched_and_limited_by_its_signals(chip: Hierarchy) -> None:
    text = WATCH.read_text()
    bound = re.findall(r"bind (\w+) \w+ .*?\$bits\((\w+)\).*? watch \(\s*(.*?)\s*\);", text, re.S)
    assert len(bound) == 2
    for module, size, ports in bound:
        assert {size, *re.findall(r"\.(\w+)", ports)} <= chip.signals[module]
    forced = re.findall(r'forceable -module "(\w+)" -var "(\w+)"', WATCH_CONTROL)
    assert len(forced) == 3
    assert all(signal in chip.signals[module] for module, signal in forced)
