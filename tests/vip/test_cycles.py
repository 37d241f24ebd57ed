"""One number is called cycles: the program's own, whoever runs it and shows it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sim_tb.harness.memory import MemoryBehaviour
from soc.generate.presets import preset
from vip.cosimulation.program import cosim

EXAMPLES = Path(__file__).parents[2] / "examples"
SUMS = EXAMPLES / "sums.s"
MEMORY = EXAMPLES / "sums.bin"
ENGINE = preset("pe-small")
LATENCY = 25


@pytest.mark.parametrize("on", ["model", "rtl"])
def test_api_and_command_show_the_same(vip, on, tmp_path):
    found = cosim(SUMS, ENGINE, memory=MEMORY, on=on, behaviour=MemoryBehaviour(latency=LATENCY))
    end = found.result.engine
    assert found.cycles == found.result.cycles == end.cycles == end.counters["CYCLES"]
    assert found.cycles < found.result.elapsed_cycles == end.elapsed_cycles
    assert found.to_json()["cycles"] == found.cycles
    words = (SUMS, "--memory", MEMORY, "--preset", "pe-small", "--latency", LATENCY, "--on", on)
    code, shown, _ = vip("cosim", "program", *words, "--json", "run.json")
    assert code == 0
    assert json.loads((tmp_path / "run.json").read_text())["cycles"] == found.cycles
    assert re.search(rf"^cycles +{found.cycles}\b", shown, re.MULTILINE)


def test_an_engine_without_counters_takes_the_same():
    plain = replace(ENGINE, counters=False)
    counted, not_counted = (
        cosim(SUMS, config, memory=MEMORY, on="model") for config in (ENGINE, plain)
    )
    assert not not_counted.result.engine.counters
    assert not_counted.cycles == counted.cycles > 0
    assert cosim(SUMS, plain, memory=MEMORY, on="iss").cycles == 0
