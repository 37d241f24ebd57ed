"""A functional unit of one's own, added to a copy of the sources as CONTRIBUTING.md says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hdl.config import ConfigurationError
from pe.config import LOGISTIC_INSTRUCTIONS, PeConfig
from pe.vector.logistic import LogisticPort
from pe.vector.writeback import VectorFinish

ROOT = Path(__file__).parents[3]

#: The golden function and its declaration: ``isa/popcount.py``.
GOLDEN = '''
"""Numbers of ones."""

from enum import IntEnum

from .special_unit import Array, SpecialUnit


class CountOp(IntEnum):
    POPCOUNT = 2


def popcount(function: CountOp, values: Array, fx: int) -> Array:
    import numpy as np

    bits = np.unpackbits(values.view(np.uint8)).reshape(-1, 16)
    return bits.sum(axis=1).astype(values.dtype)


POPCOUNT = SpecialUnit(
    name="popcount",
    functions=CountOp,
    passes=1,
    fractions=False,
    evaluate=popcount,
    manual="### Numbers of ones\\n\\n`v.popcount` counts the ones of each element.\\n",
)
'''
#: The hardware, with all elements of a word in one cycle: ``pe/vector/popcount.py``.
HARDWARE = '''
"""Numbers of ones."""

from amaranth.hdl import Module
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import WORD_BITS


def _beat():
    return data.StructLayout({"active": 1})


class VectorPopcount(Component):
    def __init__(self):
        word = WORD_BITS
        members = {"word": In(word), "beat": In(_beat()), "result": Out(word), "valid": Out(1)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        for lane in range(WORD_BITS // 16):
            ones = sum(self.word.word_select(lane, 16))
            m.d.sync += self.result.word_select(lane, 16).eq(ones)
        m.d.sync += self.valid.eq(self.beat.active)
        return m


class PopcountPort:
    name = "popcount"
    cycles = 1

    def beat(self):
        return _beat()

    def begin(self, beat, step):
        return [beat.active.eq(step.active)]

    def component(self, config):
        return VectorPopcount()


POPCOUNT = PopcountPort()
'''
#: Line of a table -> what stands in its place.
LINES = {
    "isa/units.py": {
        "from .special_unit import": "from .popcount import POPCOUNT\nfrom .special_unit import",
        "in (LOGISTIC,)": "in (LOGISTIC, POPCOUNT)",
    },
    "pe/vector/units.py": {
        "from .special import": "from .popcount import POPCOUNT\nfrom .special import",
        "= (LOGISTIC,)": "= (LOGISTIC, POPCOUNT)",
    },
}
#: The 16 numbers of each run.
NUMBERS = [0, 1, -1, 255, -32768, 32767, *range(2, 12)]
PROGRAM = """\
    mov.imm r1, #16
    set.vl r1
    mov.imm r2, #0
    mov.imm r3, #64
    ld.sram [16-bit] r2, r5, r1
    v.popcount [16-bit] r3, r2
    v.drain
    st.sram [16-bit] r5, r3, r1
    memfence
    halt
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The sources with the unit."""
    folder = tmp_path_factory.mktemp("popcount")
    left_out = shutil.ignore_patterns("__pycache__", "results")
    for path in ROOT.glob("*/__init__.py"):
        shutil.copytree(path.parent, folder / path.parent.name, ignore=left_out)
    for name in ("vip_rooms.py", "tests/steady_streams.py", "tests/pe/vector/vector_bench.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "isa/popcount.py").write_text(GOLDEN)
    (folder / "pe/vector/popcount.py").write_text(HARDWARE)
    for name, lines in LINES.items():
        text = (folder / name).read_text()
        for line, other in lines.items():
            assert text.count(line) == 1, (name, line)
            text = text.replace(line, other)
        (folder / name).write_text(text)
    (folder / "own.s").write_text(PROGRAM)
    return folder


def python(folder: Path, script: str) -> str:
    """What ``script`` prints, with the sources in ``folder``."""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_bench_of_the_vector_unit(copy: Path) -> None:
    """Alone, which delays its result, and beside units and stages that give theirs elsewhere."""
    python(
        copy,
        """
import random
from pe.config import PeConfig
from tests.pe.vector.vector_bench import hostile_memory, random_command, run

for others in ([], ["v.tanh[16]", "v.v.mul[16]", "m.v.add.min[8]"]):
    rng = random.Random(1)
    keys = ["v.popcount[16]", *others]
    config = PeConfig(
        instructions=frozenset({*keys, "set.vl", "set.mr", "halt"}), scratchpad_bytes=2048
    )
    commands = [random_command(rng, key, 1024, 0, 24) for key in keys * 6]
    rng.shuffle(commands)
    run(config, commands, hostile_memory(rng, 2048))
""",
    )


#: Runs the program of the copy as ``vip.run`` and ``vip.cosim`` do, with ``options``.
RUN = f"""
from dataclasses import replace
import numpy as np
import vip
from pe.config import LOGISTIC_INSTRUCTIONS, STANDARD_INSTRUCTIONS, PeConfig
from soc.generate.presets import preset

assert preset("pe-logistic").instructions == LOGISTIC_INSTRUCTIONS
assert "v.popcount[16]" not in LOGISTIC_INSTRUCTIONS
config = PeConfig(instructions=STANDARD_INSTRUCTIONS | {{"v.popcount[16]"}})
numbers = np.array({NUMBERS}, "<i2")
ended = vip.VERB("own.s", config, memory=numbers, dump=(0, 32), OPTIONS)
print(np.frombuffer(ended.dumped, "<i2").tolist())
"""
ONES = [(number & 0xFFFF).bit_count() for number in NUMBERS]


def test_program_manual_and_presets(copy: Path) -> None:
    assert python(copy, RUN.replace("VERB", "run").replace(", OPTIONS", "")) == f"{ONES}\n"
    manual = python(copy, "from isa.manual import manual; print(manual())")
    assert "A popcount function takes 1 cycle per word." in manual
    assert "### Numbers of ones" in manual


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "options"), [("run", "compiled=True"), ("cosim", "on='rtl'")])
def test_program_in_cpp_and_on_verilog(copy: Path, verb: str, options: str) -> None:
    assert python(copy, RUN.replace("VERB", verb).replace("OPTIONS", options)) == f"{ONES}\n"


@pytest.mark.parametrize("cycles", [-1, 7])
def test_cycles_outside_the_pipeline_are_refused(monkeypatch, cycles: int) -> None:
    monkeypatch.setattr(LogisticPort, "cycles", cycles)
    with pytest.raises(
        ConfigurationError,
        match=rf"^special unit logistic: cycles is {cycles}, must be from 0 to 6, ",
    ):
        VectorFinish(PeConfig(instructions=LOGISTIC_INSTRUCTIONS))
