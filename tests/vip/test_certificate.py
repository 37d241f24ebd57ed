"""``vip model certify``: the timing model beside the Verilog."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import vip
from sim_tb.workloads import certificate
from sim_tb.workloads.certificate import KINDS, certified_runs, run_certified
from support.errors import VipError
from vip.cli.app import main


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["vip", "model", "certify", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_equal_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first = next(certified_runs(["chip"]))
    monkeypatch.setattr(certificate, "certified_runs", lambda *_, **__: [first])
    report = tmp_path / "c.json"
    assert call(monkeypatch, "--only", "chip", "--json", str(report)) == 0
    assert "1 of 1 runs are equal" in capsys.readouterr().out
    found = json.loads(report.read_text())
    (row,) = found["rows"]
    assert row["model_cycles"] == row["verilog_cycles"] > 10_000
    assert row["differing_counters"] == {}


def test_runs_that_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(_: object, on: str) -> tuple[int, dict[str, int]]:
        more = 5 if on == "model" else 0
        return 100 + more, {"CYCLES": 100 + more, "STALL_VECTOR": 7 + more, "ISSUED_SCALAR": 3}

    numbers = []
    for _ in range(2):
        monkeypatch.setattr(certificate, "run_certified", run)
        report = tmp_path / "c.json"
        assert call(monkeypatch, "--only", "chip", "--json", str(report)) == 1
        found = json.loads(report.read_text())
        numbers.append(found["number"])
        assert (found["runs"], found["equal_runs"]) == (8, 0)
        assert found["median_error_percent"] == found["worst_error_percent"] == pytest.approx(5)
        assert found["rows"][0]["differing_counters"] == {"CYCLES": 5, "STALL_VECTOR": 5}
    assert numbers[0] == numbers[1]
    output = capsys.readouterr().out
    assert "+5.00 %" in output
    assert "0 of 8 runs are equal" in output


def test_kinds() -> None:
    names = [run.name for run in certified_runs(layers=False)]
    assert len(names) == len(set(names))
    assert len(list(certified_runs())) > len(names)
    assert {run.kind for run in certified_runs()} == set(KINDS)
    known = "memory, engine, vault, chip"
    with pytest.raises(VipError, match=f"unknown machine 'board'; there are: {known}"):
        vip.certify(["board"])


def test_an_engine_and_a_vault_run() -> None:
    runs = {run.name: run for run in certified_runs(["engine", "vault"], layers=False)}
    for name in ("matrix-addition", "bp_coarse_batch_1"):
        cycles, counters = run_certified(runs[name], "model")
        assert counters["CYCLES"] >= cycles > 0


def test_the_data_port_takes_time() -> None:
    ported = [run for run in certified_runs(["chip"]) if run.port]
    assert [run.name for run in ported] == ["tiny_data_port", "fpga_data_port"]
    through, counters = run_certified(ported[0], "model")
    preloaded, others = run_certified(replace(ported[0], port=False), "model")
    assert counters["ISSUED_VECTOR"] == others["ISSUED_VECTOR"]
    assert through > 2 * preloaded


def test_a_memory_runs() -> None:
    runs = {run.name: run for run in certified_runs(["memory"])}
    cycles, counters = run_certified(runs["open-page sequential_read"], "model")
    assert cycles > 2 * counters["vault READS"] == 40_000
    assert "vault CYCLES" not in counters


def test_counters_of_vaults_and_nodes_count() -> None:
    runs = {run.name: run for run in certified_runs(["chip"])}
    _, counters = run_certified(runs["tiny_bp_m"], "model")
    assert counters["vault READS"] > counters["node REMOTE_REQUESTS"] > 0
    assert counters["node RECEIVED_FLITS"] == counters["node SENT_FLITS"] > 0


def test_a_load_history_is_certified() -> None:
    """The vault's cycles are compared with the record of the Verilog by `bench timing_model`."""
    runs = {run.name: run for run in certified_runs(["engine", "vault"], layers=False)}
    cycles, counters = run_certified(runs["conv5_1_32_entries_4_ways"], "model")
    assert counters["CYCLES"] == cycles
    assert counters["HISTORY_HITS"] > counters["WORKSPACE_COLUMNS"] > 0
    assert "conv5_1_8_engines_32_entries_0_lines" in runs
    assert "conv5_1_8_engines_32_entries_64_lines" in runs
