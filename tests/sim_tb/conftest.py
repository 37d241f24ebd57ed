"""One simulator for all kernels of a module on an engine: starting one takes half a second."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

from isa.run import Machine
from pe.config import PeConfig
from sim_tb.cosim import kernels
from sim_tb.cosim.engine import PeSimulation
from sim_tb.cosim.machine import check_machine, open_machine
from sim_tb.harness.memory import MemoryBehaviour


@pytest.fixture(scope="module", autouse=True)
def shared_simulators() -> Iterator[None]:
    """Engines of :func:`sim_tb.cosim.kernels.run_on` stay open to the end of the module.

    Each launch begins with a reset, and with random bytes in the scratchpad; registers keep what
    earlier kernels left. A simulator that a test has ended by an error is not used again.
    """
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        engines: dict[PeConfig, PeSimulation] = {}

        @contextmanager
        def opened(design: Any, on: Any = "rtl", **options: Any) -> Iterator[Machine]:
            if on != "rtl" or not isinstance(design, PeConfig) or options.keys() - {"memory"}:
                with open_machine(design, on, **options) as machine:
                    yield machine
                return
            check_machine(design, on, **options)
            engine = engines.pop(design, None)
            if engine is None:
                engine = stack.enter_context(PeSimulation(design))
            engine._behaviour = options.get("memory") or MemoryBehaviour()
            if design.sram == "behavioural":
                pad = random.Random(0).randbytes(design.scratchpad_bytes)
                engine.run = partial(PeSimulation.run, engine, scratchpad=pad)
            yield engine
            engines[design] = engine

        patch.setattr(kernels, "open_machine", opened)
        yield
