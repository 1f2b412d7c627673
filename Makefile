PYTHON ?= python3
SEED ?= 20240229
BUDGET ?= standard
BENCH ?= all
WORKERS ?= auto
DATA ?= $(or $(AUDITDP_DATA),$(wildcard ../shared/data))
BIN := .venv/bin
LIBRARIES := .venv/libraries
LONG := $(addprefix libraries/audit_floating_point.py::,diffprivlib_gaussian pydp_gaussian)
OLD := diffprivlib==0.4.0 opendp==0.6.1 smartnoise-synth==1.0.5

.PHONY: help audit report libraries mutate test statistics lint format bench selftest docs screenshots wheel lock clean

help:  ## say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s%s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

audit: .venv/ready  ## audit every mechanism; leaves the report and the record in reports/, and says what changed
	$(BIN)/auditdp run audits -n $(WORKERS) --seed $(SEED) --budget $(BUDGET) $(if $(DATA),--data $(DATA)) \
		--report html=reports/index.html --report json=reports/run.json; found=$$?; \
		test ! -f auditdp-baseline.toml || $(BIN)/auditdp baseline check reports/run.json || true; exit $$found

report:  ## audit every mechanism, and write the ledger of published claims anew
	$(MAKE) audit; found=$$?; $(BIN)/python -m audits.ledger reports/run.json -o reports \
		$(if $(SENDER),--sender '$(SENDER)') $(if $(LINK),--link '$(LINK)') && exit $$found

libraries: $(LIBRARIES)/ready  ## audit other people's libraries; writes reports/libraries.md
	$(LIBRARIES)/bin/python -m auditdp run libraries -n $(WORKERS) --seed $(SEED) --budget quick \
		--report json=reports/libraries.json; found=$$?; \
		$(LIBRARIES)/bin/python -m auditdp run $(LONG) -n $(WORKERS) --seed $(SEED) \
		--report json=reports/libraries-long.json && \
		$(LIBRARIES)/bin/python -m libraries.confirm reports/libraries.json reports/libraries-long.json \
		-o reports/libraries/confirmed.jsonl && \
		$(LIBRARIES)/bin/python -m libraries.ledger reports/libraries.json reports/libraries-long.json \
		--confirmed reports/libraries/confirmed.jsonl -o reports && exit $$found

mutate: .venv/ready  ## would the audits detect faults in the noise of their mechanisms? leaves reports/mutation.html and .json
	$(BIN)/auditdp mutate audits -n $(WORKERS) --seed $(SEED) --budget $(BUDGET) $(if $(DATA),--data $(DATA)) \
		--report html=reports/mutation.html --report json=reports/mutation.json

test: .venv/ready  ## run the test suite
	$(BIN)/python -m compileall -q auditdp
	PYTHONDONTWRITEBYTECODE= $(if $(DATA),AUDITDP_DATA=$(abspath $(DATA))) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

statistics: .venv/ready  ## the statistical tests with all their repetitions, and what only they have time for
	$(BIN)/python -m pytest -n $(WORKERS) -q -m 'statistical or full or dear' --full

lint: .venv/ready  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/ready  ## rewrite files in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/ready  ## measure the auditor against the numbers to beat; leaves reports/bench.html and reports/bench.json
	test -e .venv/peers || { $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group bench \
		&& touch .venv/peers; } || echo "the peers are not installed; the benchmark goes on without them"
	$(if $(DATA),AUDITDP_DATA=$(abspath $(DATA))) $(BIN)/python -m benchmarks $(BENCH) --seed $(SEED)

selftest: .venv/ready  ## prove that this installation finds what is broken
	$(BIN)/auditdp selftest

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e . --group docs
	touch $@

docs: .venv/docs  ## build the documentation into build/site
	$(BIN)/python -m docs.assembling
	$(BIN)/zensical build --clean --strict

screenshots: docs  ## pictures of the site's pages and of a report, in build/screenshots; needs Chromium
	$(BIN)/python -m docs.screenshots

wheel: .venv/ready  ## build the wheel, and check its contents and that it imports on its own
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist
	$(BIN)/python tests/check_wheel.py dist

lock:  ## write pylock.toml (PEP 751): what auditdp itself and its signatures need, as constraints.txt has it; needs uv
	uv pip compile --quiet pyproject.toml --extra attest -c constraints.txt --universal --python-version 3.11 --no-config \
		--default-index https://pypi.org/simple --custom-compile-command 'make lock' --format pylock.toml -o pylock.toml

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("auditdp needs Python 3.11 or newer, found " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'  # which knows groups
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e . --group dev
	$(BIN)/python -m compileall -qq -j 0 -x /tests/ .venv/lib || true  # by all cores, which pip does by one; audits cannot write there
	touch $@

$(LIBRARIES)/ready: pyproject.toml constraints.txt
	test -x $(LIBRARIES)/bin/python || $(PYTHON) -m venv $(LIBRARIES)
	$(LIBRARIES)/bin/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	grep -v '^scikit-learn==' constraints.txt > $(LIBRARIES)/constraints.txt
	$(LIBRARIES)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LIBRARIES)/constraints.txt -e . --group libraries
	for old in $(OLD); do $(LIBRARIES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target $(LIBRARIES)/old/$$(echo $$old | sed 's/==/-/') $$old || exit 1; done
	touch $@

clean:  ## remove what was made here, reports aside
	rm -rf .venv .auditdp .cache dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
