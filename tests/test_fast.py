"""Which tests ``pytest --fast`` leaves out."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

CONFTEST = """
from tests.fast import FastRun

def pytest_configure(config):
    config.pluginmanager.register(FastRun())
"""

TESTS = """
import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from amaranth.lib.wiring import Component

from hdl.emission import emit

def start():
    subprocess.run(["true"], check=True)

@pytest.fixture(scope="module")
def built():
    start()

def test_plain():
    pass

def test_wrong():
    assert False

def test_starts():
    start()

def test_catches():
    with suppress(BaseException):
        start()

def test_thread():
    thread = threading.Thread(target=start)
    thread.start()
    threading.Event().wait(60)

def test_fixture(built):
    pass

def test_fixture_again(built):
    pass

def test_long():
    while True:
        pass

class Destroyed:
    def __del__(self):
        while True:
            pass

def test_destructor():
    Destroyed()
    while True:
        pass

def test_import():
    import module
    while True:
        pass

def test_module_is_whole():
    from module import last

def test_emits():
    emit(Component({}), "top")

@pytest.mark.parametrize("case", range(6))
def test_cases(case):
    if case != 5:
        start()

@pytest.mark.parametrize("case", range(7))
def test_a_fast_case(case):
    if case not in (3, 6):
        start()

def test_commit():
    subprocess.run(["git", "--version"], check=True)

def test_nothing_is_kept():
    assert os.listdir(os.environ["VIP_BUILD_DIR"]) == []
    assert Path(os.environ["VIP_BUILD_DIR"]) != Path("kept")
"""

MODULE = """
import time

end = time.process_time() + 0.5
while time.process_time() < end:
    pass
last = 1
"""

RUN = {
    "test_plain": "PASSED",
    "test_wrong": "FAILED",
    "test_starts": "SKIPPED",
    "test_catches": "SKIPPED",
    "test_thread": "SKIPPED",
    "test_fixture": "SKIPPED",
    "test_fixture_again": "SKIPPED",
    "test_long": "SKIPPED",
    "test_destructor": "SKIPPED",
    "test_import": "SKIPPED",
    "test_module_is_whole": "PASSED",
    "test_emits": "SKIPPED",
    **{f"test_cases[{case}]": "SKIPPED" for case in range(6)},
    **{f"test_a_fast_case[{case}]": "SKIPPED" for case in range(7)},
    "test_a_fast_case[3]": "PASSED",
    "test_a_fast_case[6]": "PASSED",
    "test_commit": "PASSED",
    "test_nothing_is_kept": "PASSED",
}


def test_what_is_not_fast_is_left_out(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_all.py").write_text(TESTS)
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "simulator").touch()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "test_all.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "VIP_BUILD_DIR": "kept"},
        capture_output=True,
        text=True,
    )
    results = dict(re.findall(r"^test_all\.py::(\S+) ([A-Z]+)", done.stdout, re.MULTILINE))
    assert results == RUN, done.stdout + done.stderr
    assert done.returncode == 1
