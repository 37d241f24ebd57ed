"""ONNX's own tests of operators, through its backend interface, on the instruction set simulator.

Outputs may differ from the expected ones by :data:`BOUND` of the largest magnitude of the output.
``docs/onnx_operators.md`` lists the cases that pass; these are run here, all others must be refused
with one line, or differ. ``python -m tests.onnx_models.test_backend`` writes the list; with the
name of an operator, it runs that one's cases alone.
"""

import re
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.backend.test import BackendTest
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests
from onnx.numpy_helper import to_array

from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import EXPANDED
from support.errors import VipError
from vip.models.backend import VipBackend

PAGE = Path(__file__).parents[2] / "docs" / "onnx_operators.md"
#: Largest difference of an output's elements, of its largest magnitude.
BOUND = 1 / 512
#: Operators of convolution, pooling and matrix products.
FAMILY = frozenset(
    (
        "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "Gemm",
        "GlobalAveragePool", "GlobalMaxPool", "LpPool", "MatMul", "MatMulInteger", "MaxPool",
        "MaxUnpool", "QLinearConv", "QLinearMatMul",
    )
)  # fmt: skip


@cache
def node_cases() -> dict[str, Any]:
    """Cases of single operators, by name."""
    with warnings.catch_warnings():
        # Some divide by zero on purpose.
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None) if case.model is not None}


@dataclass(frozen=True)
class Stored:
    """A case whose model and tensors lie in files of the ``onnx`` package."""

    model: Any
    data_sets: list[tuple[list[Any], list[Any]]]


def _tensors(folder: Path, kind: str) -> list[Any]:
    count = len(list(folder.glob(f"{kind}_*.pb")))
    paths = [folder / f"{kind}_{number}.pb" for number in range(count)]
    return [to_array(onnx.load_tensor(path)) for path in paths]


@cache
def stored_cases() -> dict[str, Stored]:
    """Cases that were converted from PyTorch, by name."""
    found = {}
    for kind in ("pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            folder = Path(case.model_dir)
            sets = [
                (_tensors(each, "input"), _tensors(each, "output"))
                for each in sorted(folder.glob("test_data_set_*"))
            ]
            found[case.name] = Stored(onnx.load(folder / "model.onnx"), sets)
    return found


def mismatch(found: Any, wanted: Any) -> str:
    """How an output is another than the expected one; "": it is that, within the bound."""
    wanted = to_array(wanted) if isinstance(wanted, TensorProto) else np.asarray(wanted)
    if found.shape != wanted.shape:
        return f"its output has the shape {found.shape}, not {wanted.shape}"
    if found.dtype != wanted.dtype:
        return f"its output has the type {found.dtype}, not {wanted.dtype}"
    exact = wanted.astype(np.float64)
    most = max(float(np.abs(exact).max(initial=0.0)), 1e-9)
    error = float(np.abs(found.astype(np.float64) - exact).max(initial=0.0)) / most
    return "" if error <= BOUND else f"its output differs by {error:.2g} of its magnitude"


class VipTest(BackendTest):
    """ONNX's test with the bound of 16-bit elements in place of that of 32-bit numbers."""

    @classmethod
    def assert_similar_outputs(
        cls, ref_outputs: Any, outputs: Any, rtol: float, atol: float, model_dir: Any = None
    ) -> None:
        del rtol, atol, model_dir
        assert len(ref_outputs) == len(outputs)
        for wanted, found in zip(ref_outputs, outputs, strict=True):
            assert not mismatch(found, wanted)


def supported() -> list[str]:
    """Cases that pass, by the page."""
    text = PAGE.read_text(encoding="utf-8").partition("## Cases that pass")[2]
    return re.findall(r"`(test_\w+)`", text)


@cache
def methods() -> dict[str, Any]:
    """Methods of ONNX's test cases by name, for the host's processor; to collect them takes
    seconds."""
    tests = VipTest(VipBackend, __name__)
    found = {}
    for cases in tests.test_cases.values():
        for name in dir(cases):
            if name.startswith("test_") and name.endswith("_cpu"):
                found[name.removesuffix("_cpu")] = (cases, name)
    return found


PASSING = supported()
#: A part of them, of every operator, in the default suite.
_EVERY = 24
#: Tests among which the cases that do not pass are divided.
_PARTS = 4


@pytest.mark.parametrize("name", PASSING[::_EVERY])
def test_case(name: str) -> None:
    cases, method = methods()[name]
    getattr(cases(method), method)()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PASSING if name not in PASSING[::_EVERY]])
def test_further_case(name: str) -> None:
    cases, method = methods()[name]
    getattr(cases(method), method)()


@pytest.mark.parametrize("part", range(_PARTS))
def test_other_cases_are_refused_with_one_line_or_differ(part: int) -> None:
    """One of 40 of them."""
    cases = node_cases() | stored_cases()
    for name in sorted(set(cases) - set(PASSING))[::40][part::_PARTS]:
        inputs, outputs = cases[name].data_sets[0]
        prepared = VipBackend.prepare(cases[name].model)
        message, found = "", outputs
        try:
            found = prepared.run(inputs)
        except VipError as refused:
            message = str(refused)
        assert "\n" not in message, name
        differs = message or any(map(mismatch, found, outputs))
        assert differs, f"{name} passes: write the list again"


def test_an_output_of_another_shape_or_type_is_no_pass() -> None:
    wanted = np.ones((2, 1), np.float32)
    assert not mismatch(wanted + np.float32(BOUND / 2), wanted)
    assert "shape" in mismatch(np.ones((1, 2), np.float32), wanted)
    assert "shape" in mismatch(np.ones(1, np.float32), np.float32(1))
    assert "type" in mismatch(wanted.astype(np.float64), wanted)
    assert "differs" in mismatch(wanted + np.float32(2 * BOUND), wanted)


def test_the_page_lists_every_operator() -> None:
    listed = PAGE.read_text(encoding="utf-8").partition("Not supported, ")[0]
    for name in OPERATORS:
        assert f"| `{name}` |" in listed or f"`{name}` (" in listed


def _operators(case: Any) -> set[str]:
    """Types of a case's nodes."""
    kinds = (f"{node.domain}.{node.op_type}".lstrip(".") for node in case.model.graph.node)
    return {*kinds} - {"Constant"}


def _why_not(case: Any) -> str:
    """Why a case does not pass; "": it does."""
    try:
        for inputs, outputs in case.data_sets:
            found = VipBackend.prepare(case.model).run(inputs)
            if len(found) != len(outputs):
                return f"it has {len(found)} outputs, not {len(outputs)}"
            for one, wanted in zip(found, outputs, strict=True):
                if why := mismatch(one, wanted):
                    return why
    except VipError as error:
        return str(error)
    return ""


def write_page() -> None:
    """Run all cases and write the page."""
    passed: dict[str, list[str]] = defaultdict(list)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    reasons: dict[str, str] = {}
    family = {False: [0, 0], True: [0, 0]}
    nodes = 0
    stored = stored_cases()
    every = node_cases() | stored
    for number, (name, case) in enumerate(every.items()):
        print(f"{number} of {len(every)} {name}", end="\r", file=sys.stderr)
        why, operators = _why_not(case), _operators(case)
        good = not why
        # A case of one kind of node is of that; expanded ones are of several.
        alone = min(operators) if len(operators) == 1 else "(several operators)"
        counts[alone][0] += 1
        counts[alone][1] += good
        if len(operators) == 1 and alone in FAMILY:
            family[name in stored][0] += 1
            family[name in stored][1] += good
        nodes += good and name not in stored
        if good:
            passed[alone].append(name)
        elif alone not in reasons:
            reasons[alone] = re.sub(r"^node .{1,80}? \([\w.]+\): ", "", why)
    done = sum(len(names) for names in passed.values())
    lines = [
        "# ONNX operators",
        "",
        "Generated by `python -m tests.onnx_models.test_backend` from the node cases of the `onnx`",
        "package and those that were converted from PyTorch, run through",
        "`vip.models.backend.VipBackend` on the instruction set simulator of",
        "the preset `vault-logistic`, whose outputs are the golden model's bit for bit. A case",
        f"passes if each output differs by at most 1/{round(1 / BOUND)} of its largest magnitude.",
        "Each case is calibrated on its own inputs. Inputs that must be constant, such as weights,",
        "are taken for constants.",
        "",
        f"{nodes} of {len(node_cases())} node cases pass, and {done - nodes} of {len(stored)} from "
        "PyTorch;",
        "of the single-operator cases of convolution, pooling and matrix products",
        f"{family[False][1]} of {family[False][0]} node cases and {family[True][1]} of "
        f"{family[True][0]} from PyTorch. The others are refused with one",
        "line, or differ, as where a function is steep. Most of them have inputs that are not",
        "numbers or not finite, or operators without a kernel (rounding, sorting, loops).",
        "",
        "| operator | cases | pass | supported | first case that does not pass |",
        "|---|---|---|---|---|",
    ]
    absent, whole = [], []
    for name in sorted(set(counts) | set(OPERATORS)):
        cases, good = counts[name]
        mark = "yes" if name in OPERATORS or name in EXPANDED else ""
        reason = reasons.get(name, "").replace("|", "/")[:150]
        if not mark and not good:
            absent.append(f"`{name}` ({cases})")
        elif mark and good == cases:
            whole.append(f"`{name}` ({cases})")
        else:
            lines.append(f"| `{name}` | {cases} | {good} | {mark} | {reason} |")
    lines += ["", f"Supported, and all of so many cases pass: {', '.join(whole)}."]
    lines += ["", f"Not supported, of so many cases: {', '.join(absent)}."]
    lines += ["", "## Cases that pass", ""]
    for initial, names in groupby(sorted(passed), lambda name: name[0]):
        cases = [f"{name} " + ", ".join(f"`{each}`" for each in passed[name]) for name in names]
        lines.append(f"- {initial}: " + "; ".join(cases))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for tried in sys.argv[1:]:
        for one, each in (node_cases() | stored_cases()).items():
            if _operators(each) == {tried}:
                print(one, _why_not(each) or "passes")
    if not sys.argv[1:]:
        write_page()
