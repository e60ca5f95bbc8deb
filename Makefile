# make demo   install into .venv and run COD10K-C on the demo photographs
# make test   install the test extra, then lint, type-check and test: what CI runs

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# one thread per process: on busy cores, more cost far more than they bring
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export RAYON_NUM_THREADS := 1

.PHONY: demo test lint clean

demo: $(VENV)/core
	$(BIN)/crypsis demo --out runs/demo

test: lint
	$(BIN)/pytest

lint: $(VENV)/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/test: pyproject.toml constraints/ci.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[test]" --constraint constraints/ci.txt
	touch $@

clean:
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
