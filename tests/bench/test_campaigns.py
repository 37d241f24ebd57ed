"""``vip bench campaigns``: resets, errors and stalls, and that what they break is told."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from bench import campaigns as experiment
from bench.campaigns import CAMPAIGNS
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError, TooLong
from sim_tb.dut.engine import configuration_verilog
from sim_tb.harness.chip import Operation, Result
from sim_tb.random.comparison import Difference
from sim_tb.timed.chip.chip_model import ChipModel
from sim_tb.workloads import campaigns as engine_campaigns
from sim_tb.workloads import chip_campaigns
from sim_tb.workloads.campaigns import Campaign, Point, engine_resets, tally
from sim_tb.workloads.chip_campaigns import ChipOfResets, chip_errors
from soc.host.driver import HostTimeout

#: Points in ``make test``. Resets of vaults, and resets and stalls of chips, take 20 to 30 s for a
#: few points, as whole chips are compiled; all of them, and what shows that they find a fault, are
#: in ``make test-slow`` and ``vip bench campaigns``.
SOME = {
    "engine_resets": 10,
    "timing_model_errors": 10,
}
SEED = 5


@pytest.mark.parametrize("name", SOME)
def test_some_points(name: str) -> None:
    campaign = CAMPAIGNS[name](SOME[name], SEED)
    assert campaign == Campaign(points=SOME[name], hung=0, lost=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_300_points(name: str) -> None:
    campaign = CAMPAIGNS[name](300, 1000)
    assert campaign.first == ""
    assert campaign.points >= 300
    assert (campaign.hung, campaign.lost) == (0, 0)


def test_errors_that_never_come_are_found() -> None:
    class Healthy(ChipModel):
        def fail(self, begin: int, end: int) -> None:
            """Nothing fails."""

    campaign = chip_errors(experiment.on_axi(8), 4, SEED, Healthy)
    assert campaign.lost >= 3
    assert re.match(r"point \d: range\(\d+, \d+\): (the host's read|engines)", campaign.first)


class _Forgetful(ChipOfResets):
    """A host that thinks that it resets the chip."""

    _all, _before = 0, 0

    def reset(self) -> None:
        self._before = self._all
        self.cycles = 0

    def perform(self, operation: Operation) -> Result:
        try:
            return super().perform(operation)
        finally:
            self._all = max(self._all, self.cycles)
            self.cycles = self._all - self._before


@pytest.mark.slow
def test_a_host_that_does_not_reset_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chip_campaigns, "ChipOfResets", _Forgetful)
    campaign = chip_campaigns.chip_resets(experiment.TINY, experiment.on_chip(), 2, SEED)
    assert campaign.hung + campaign.lost > 0


@pytest.mark.slow
def test_a_register_without_reset_is_found() -> None:
    """Ranges of transfers that the reset cut off stay in the range check."""
    text = configuration_verilog(PeConfig())
    arc = text.index("module arc")
    end = text.index("endmodule", arc)
    reset = r"    if \(rst\) begin\n      \w+ = 8'h00;\n    end\n"
    changed, count = re.subn(reset, "", text[arc:end])
    assert count == PeConfig().arc_entries
    netlist = text[:arc] + changed + text[end:]
    campaign = engine_resets(PeConfig(), 10, SEED, netlist=netlist)
    assert campaign.hung + campaign.lost > 0


def test_what_went_wrong_is_counted_by_its_kind() -> None:
    """By type: words of messages don't matter."""
    points: list[Point] = [
        ("", None),
        ("reset", TooLong("no answer")),
        ("", None),
        ("stall", CosimError("byte 0x7 is still wrong")),
        ("stall", HostTimeout("PE 2")),
    ]
    campaign = tally(iter(points))
    assert campaign == Campaign(points=5, hung=2, lost=1, first="point 2: reset: no answer")


def test_programs_that_hang_are_counted_by_type(monkeypatch: pytest.MonkeyPatch) -> None:
    different = (Difference(3, ("no end",), "", hung=True), Difference(4, ("r9 hangs",), ""))
    report = SimpleNamespace(memory_errors=1, programs=2, different=different)
    monkeypatch.setattr(engine_campaigns, "check_programs", lambda *values, **named: report)
    campaign = engine_campaigns.engine_errors(PeConfig(), 5, SEED)
    assert campaign == Campaign(points=1, hung=1, lost=1, first="seed 3: no end")


def test_the_first_failure_is_the_commands_error(monkeypatch: pytest.MonkeyPatch, vip: Any) -> None:
    lost = Campaign(points=3, hung=1, lost=1, first="point 2: byte 0x7 is wrong")
    monkeypatch.setattr(experiment, "CAMPAIGNS", {"vault_resets": lambda points, seed: lost})
    code, out, err = vip("bench", "campaigns")
    assert [line.split()[:2] for line in out.splitlines() if "vault_resets_" in line] == [
        ["vault_resets_points", "3"],
        ["vault_resets_hung", "1"],
        ["vault_resets_lost", "1"],
    ]
    line = "vip: vault_resets: 1 of 3 points hung, 1 lost; point 2: byte 0x7 is wrong"
    assert (code, err.splitlines()[-1]) == (2, line)
