"""The agent's Verilog against its golden model, over a million decisions."""

from collections import deque
from pathlib import Path

import pytest

from hdl.emission import emit
from memory.agent.config import AgentConfig
from memory.agent.sarsa import Sarsa
from sim_tb.runner.build import simulator_environment
from support.processes import run_tool
from tests.memory.sarsa_model import SarsaModel

CONFIG = AgentConfig(epoch=4, epsilon_shift=5)
DECISIONS = 1_000_000


def _expected(decisions):
    """Actions of the model for the states and rewards of ``sarsa_long.sv``."""
    model = SarsaModel(CONFIG)
    x, busy, phase, first = 0x12345678, 0, 3, 0
    sampled = deque()
    earned = cycle = 0
    actions = bytearray()
    while len(actions) < decisions:
        reward = busy == 0 and x & 0xFF < 50 + (first << 6)
        earned += reward
        if cycle > CONFIG.steps and (cycle - 1 - CONFIG.steps) % CONFIG.epoch == 0:
            actions.append(model.decide(sampled.popleft(), earned))
            earned = 0
        if phase == 3:
            sampled.append((*(x >> place & 3 for place in range(16, 30, 2)), x >> 30 & 1))
            first = x >> 16 & 3
        busy = 3 if reward else max(0, busy - 1)
        phase = (phase + 1) % 4
        cycle += 1
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
    return actions, model


@pytest.mark.slow
def test_a_million_decisions(tmp_path):
    design = tmp_path / "part.v"
    design.write_text("".join(emit(Sarsa(CONFIG), "part").modules.values()))
    bench = Path(__file__).with_name("sarsa_long.sv")
    command = ["verilator", "--binary", "-j", "1", "-Wno-fatal", "--timing", "--top", "tb"]
    command += [
        "-CFLAGS",
        "-std=c++20",
        f"-GDECISIONS={DECISIONS}",
        str(bench),
        str(design),
        "-o",
        "played",
    ]
    with simulator_environment(parallel=False) as (environment, _):
        assert run_tool(command, cwd=tmp_path, env=environment).returncode == 0
    assert run_tool([str(tmp_path / "obj_dir" / "played")], cwd=tmp_path).returncode == 0
    seen = (tmp_path / "actions.txt").read_text()
    expected, model = _expected(DECISIONS)
    assert len(seen) == DECISIONS
    assert seen == "".join(f"{1 << action:x}" for action in expected)
    assert model.explored > DECISIONS // 50
    assert {*expected} == {0, 1, 2, 3}
