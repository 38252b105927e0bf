# `make demo` and `make test` do all the set-up themselves, on a machine with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo servers test lint bench bench-audit docs docs-site pictures samples fit help
help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --constraint constraints.txt --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) --constraint constraints.txt --editable '.[test]'
	@touch $@

$(VENV)/installed-servers: tests/servers.txt
	test -x $(VENV)/servers/bin/python || $(PYTHON) -m venv $(VENV)/servers
	$(VENV)/servers/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/servers.txt
	@touch $@

demo: $(VENV)/installed  ## install, analyze a shipped sample, print where the report is
	@rm -rf build/demo && mkdir -p build/demo && cp -r samples/bad_batch_jsonl build/demo && rm build/demo/*/expect.toml  # the answer
	$(BIN)/forensics analyze build/demo/bad_batch_jsonl --out demo.html --force
	@echo "Open it in a browser: $(CURDIR)/demo.html"

servers: $(VENV)/installed-servers  ## install the trackers whose servers the tests start

test: $(VENV)/installed-test $(VENV)/installed-servers  ## install the rest, run every check and test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile  # a file's tests share what they made

lint: $(VENV)/installed-test  ## ruff (format and rules) and mypy only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

samples: $(VENV)/installed-test  ## train the shipped samples again
	$(BIN)/python samples/make.py

bench: $(VENV)/installed-test  ## measure speed against the peers
	$(BIN)/python benchmarks/ingest.py

bench-audit: $(VENV)/installed-test  ## measure an audit of 100 000 simulated runs
	$(BIN)/python benchmarks/audit_scale.py

fit: $(VENV)/installed-test  ## learn the causes' weights again from the committed table
	$(BIN)/python benchmarks/fit/fit.py --write

docs: $(VENV)/installed-test  ## write the generated pages of docs/ again
	$(BIN)/python docs/make.py

pictures: $(VENV)/installed-test  ## take the screenshots of docs/images again (Chromium, torch)
	$(BIN)/python docs/make.py --screenshots

docs-site: $(VENV)/installed  ## the documentation as a site in build/site
	$(PIP) --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m mkdocs build --strict
