# The everyday commands. `make help` lists them; each step says what it does.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Where `make dev` and `make serve` listen.
PORT ?= 8787
export PORT
# Where `make example` shows its page.
EXAMPLE_PORT ?= 8788

PACKFERRY := target/debug/packferry
SAY := printf '==> %s\n'

.PHONY: help dev example setup wasm-toolchain tools worker starter publish serve test lint test-rust test-wasm test-node test-client test-parity parity clean

help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

# With PACK, a pack's directory or a folder of packs, `make dev` serves that instead, and again after every save.
PACK ?=
export PACK

ifeq ($(PACK),)
dev: setup tools worker starter publish serve ## Install what is missing, build everything, serve the starter packs, or PACK=path.
else
dev: setup tools worker serve
endif

example: ## Show a page that picks modules, runs code with them in the guest, and shows the proof. Starts the worker if none runs.
	@scripts/setup.sh tests
	@cd client && npm run --silent build
	@node examples/browser/serve.mjs --port "$(EXAMPLE_PORT)" --edge-port "$(PORT)"

setup: ## Install what is missing: the wasm32 target, the pinned npm tools, the packs' libraries.
	@scripts/setup.sh

wasm-toolchain: ## Make cargo able to compile for wasm32, by rustup or by Debian's packages.
	@scripts/wasm-toolchain.sh

tools:
	@$(SAY) "Compiling packferry and the build helper (2 to 3 minutes the first time)"
	@cargo build --quiet --package packferry --package xtask

worker: ## Build the worker into dist/worker.
	@$(SAY) "Compiling the worker to WebAssembly (1 minute the first time)"
	@cargo xtask build-worker

starter: ## Build the starter packs into manifests/starter.
	@$(SAY) "Building the starter packs into manifests/starter"
	@$(PACKFERRY) build packs --out manifests/starter

publish: ## Publish manifests/starter to the KV of the local worker.
	@$(SAY) "Publishing manifests/starter to local KV"
	@$(PACKFERRY) publish manifests/starter --local

serve: ## Serve what is built and published, on PORT (8787).
	@node scripts/serve.mjs --port "$(PORT)" $(if $(PACK),--pack "$$PACK")

test: setup tools lint test-rust test-wasm test-client test-node test-parity ## Run everything that CI runs.
	@$(SAY) "All tests passed"

lint:
	@$(SAY) "Checking format and lints"
	@cargo fmt --all --check
	@cargo clippy --quiet --workspace --all-targets -- --deny warnings
	@cargo xtask wasm clippy --quiet --package packferry-core --package packferry-worker \
	    --package packferry-panicking-worker -- --deny warnings

test-rust:
	@$(SAY) "Testing the crates"
	@cargo test --quiet --workspace

test-wasm:
	@$(SAY) "Testing the core on wasm32"
	@cargo xtask wasm test --package packferry-core

test-node: tools worker
	@scripts/setup.sh tests
	@$(SAY) "Testing end to end in workerd"
	@cargo xtask build-worker --package packferry-panicking-worker --out-dir dist/panicking-worker
	@node --test --test-concurrency="$$(node -p 'os.availableParallelism()')" tests/*.test.mjs

test-client:
	@scripts/setup.sh tests
	@$(SAY) "Testing the client"
	@cd client && npm test --silent

test-parity:
	@$(SAY) "Checking docs/parity.md against what the guest cases gave"
	@node scripts/parity.mjs --check

parity: ## Run the guest cases in every runtime and write docs/parity.md.
	@scripts/setup.sh tests
	@cargo test --quiet --package packferry-guest --test cases
	@cd client && npm test --silent -- --test-reporter=dot
	@node --test --test-reporter=dot tests/client-browser.test.mjs
	@node scripts/parity.mjs

clean: ## Remove everything that was built or installed here.
	@rm -rf target dist node_modules packs/node_modules client/node_modules client/dist client/build .wrangler .packferry manifests/*/objects manifests/*/report.json
