# Everything a newcomer needs. Nothing is installed outside $(VENV) and .work/.
#   make demo   people counting on real footage; SOURCE=video.mp4 for your own
#   make test   all checks and tests, with a table of what took how long
#   make lint   the checks alone
#   make storm  the long crash tests
#   make nightly   long histories, every planted defect, and what simulate does
#   make bench  speed as ratios to floors and peers; BENCH= names workloads and options, such as "W1a W2 --rounds 3"
#   make soak   an hour at full rate, with what it holds and how long items take; SECONDS= for less
#   make simulate   100 000 simulated schedules of faults, and what they hit
# PYTHON= names an interpreter (3.11 or newer), VENV= another folder for the environment.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

VENV ?= .venv
SOURCE ?=
OUT ?= out/demo
BENCH ?=
SECONDS ?= 3600
BIN := $(abspath $(VENV))/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
# What is used is compiled when it is first used, and of most of what is installed nothing is.
INSTALL := $(PIP) install --no-compile

.PHONY: help venv demo test lint storm nightly simulate bench soak clean

help:
	@sed -n 's/^#   //p' Makefile

# One stamp per set of extras; each is redone when pyproject.toml changes.
$(VENV)/.made:
	@python=$$(tools/find_python.sh) && echo "making $(VENV) with $$python" && "$$python" -m venv "$(VENV)"
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	@echo "installing videoflow with what the demo needs into $(VENV)"
	@$(INSTALL) -e '.[video,onnx]'
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml
	@echo "installing videoflow with what the tests need into $(VENV)"
	@$(INSTALL) -e '.[dev,video,onnx,notebook,kubernetes,gpu]'
	@touch $@

venv: $(VENV)/.dev

demo: $(VENV)/.demo
	@VENV="$(abspath $(VENV))" tools/demo.sh "$(OUT)" "$(SOURCE)"

test: venv
	@VENV="$(abspath $(VENV))" tools/check.sh

lint: venv
	@VENV="$(abspath $(VENV))" tools/check.sh lint

storm: venv
	@VENV="$(abspath $(VENV))" tools/check.sh storm

nightly: venv
	@VENV="$(abspath $(VENV))" tools/check.sh nightly

simulate: venv
	@VENV="$(abspath $(VENV))" tools/check.sh simulate

bench: venv
	@"$(BIN)/python" -m benchmarks.setup
	@"$(BIN)/python" -m benchmarks $(BENCH)

soak: venv
	@"$(BIN)/python" -m benchmarks.soak --seconds $(SECONDS)

clean:
	rm -rf .work out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
