# Two commands matter: `make run` (the main job on an embedded default) and `make test` (all tests).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

.PHONY: run test lint types check bench docs install clean
.DEFAULT_GOAL := run

install: $(VENV)/.installed

# compat: a folder on the path, not an import hook, which mypy does not follow when it checks a plugin of yours
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --config-settings editable_mode=compat -e '.[test,lint]'
	touch $@

run: install
	$(BIN)/bench run suites/quick.yaml

test: install
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

check: lint types test

bench: install
	$(BIN)/python benchmarks/report.py

docs: install
	$(BIN)/python -m harness.reference docs/deviations.md
	$(BIN)/bench schema --built-in --output suites/suite.schema.json
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site *.egg-info
