"""Fixtures shared by tests of several rooms."""

import ctypes
import gc
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pytest
from amaranth.hdl import Elaboratable

from tests import quick_simulator
from tests.executed_lines import simulator_of
from tests.fast import FastRun
from tests.steady_streams import with_checks

Simulate = Callable[..., None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only quick tests (tests/fast.py)")
    parser.addoption("--plain", action="store_true", help="Amaranth's simulator as it is")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("fast"):
        config.pluginmanager.register(FastRun())
    if not config.getoption("plain"):
        quick_simulator.install()


def pytest_collection_finish() -> None:
    """Search for garbage seldom, and not among the tests and modules, which stay to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def simulate() -> Simulate:
    """``simulate(dut, *testbenches, combinational=False, clocks={})``: runs until the testbenches
    end.

    Each testbench is an async function that takes Amaranth's simulator context. ``clocks`` are
    those of further domains: name -> period in seconds, beside 1 ns of ``sync``. What the streams
    of ``dut`` and its parts offer has to stay until it is accepted.
    """

    def run(
        dut: Elaboratable,
        *testbenches: Callable[..., object],
        combinational: bool = False,
        clocks: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with simulator_of(dut, with_checks) as simulator:
                if not combinational:
                    simulator.add_clock(1e-9)
                for domain, period in clocks.items():
                    simulator.add_clock(period, domain=domain)
                for testbench in testbenches:
                    simulator.add_testbench(testbench)
                simulator.run()

    return run


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that are the same in every run, and differ from test to test."""
    return random.Random(request.node.name)


@pytest.fixture
def small() -> Iterator[Path]:
    """A folder on a file system of 1 MiB, with a short name: a socket's path has room for 100
    characters."""
    if sys.platform != "linux" or os.getuid():
        pytest.skip("only root may mount a file system")
    library = ctypes.CDLL(None, use_errno=True)
    with TemporaryDirectory() as name:
        if library.mount(b"tmpfs", name.encode(), b"tmpfs", 0, b"size=1m"):
            pytest.skip(f"no file system can be mounted here: {os.strerror(ctypes.get_errno())}")
        try:
            yield Path(name)
        finally:
            library.umount2(name.encode(), 2)
