"""Fixtures shared by the unit tests of hardware blocks."""

import random
import warnings
from collections.abc import Callable

import pytest
from amaranth.hdl import Elaboratable
from amaranth.sim import Simulator

Simulate = Callable[..., None]


@pytest.fixture
def simulate() -> Simulate:
    """``simulate(dut, *testbenches, combinational=False)``: runs until the testbenches end.

    Each testbench is an async function that takes Amaranth's simulator context.
    """

    def run(
        dut: Elaboratable, *testbenches: Callable[..., object], combinational: bool = False
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            simulator = Simulator(dut)
            if not combinational:
                simulator.add_clock(1e-9)
            for testbench in testbenches:
                simulator.add_testbench(testbench)
            simulator.run()

    return run


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that are the same in every run, and differ from test to test."""
    return random.Random(request.node.name)
