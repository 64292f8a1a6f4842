# Two commands matter: `make demo` shows what Anywarp does, `make test` proves it. Both install what is missing
# first, after saying so, and work offline once it is there.

.DEFAULT_GOAL := help
.PHONY: help demo test gpu-test gpu-overhead build bench clients fuzz-smoke fuzz-kernels fuzz-cuda random producers tsan golden approximations setup clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: build ## build everything, then run every example on our libraries
	@scripts/demo

test: setup ## formatting, lints, every test, every example on every back end
	@scripts/test

gpu-test: ## on a machine with a GPU: the tests of both APIs against NVIDIA's driver
	@scripts/gpu-test

gpu-overhead: build ## on a machine with a GPU: what calls of our runtime cost on NVIDIA's driver, beside NVIDIA's runtime
	@scripts/gpu-overhead

build: setup ## leave the libraries and the command in dist/
	@scripts/build

bench: build ## time the benchmark kernels
	@scripts/bench

fuzz-smoke: setup ## build every fuzz target and run them all for a minute
	@scripts/fuzz-smoke

fuzz-kernels: setup ## random kernels on every back end against the interpreter (SECONDS=n, SEED=n; findings go to KEEP=folder)
	@cargo run -q --locked -p anywarp-kernel-tests --bin fuzz-kernels -- --seconds $(or $(SECONDS),600) \
		--seed $(or $(SEED),1) $(if $(KEEP),--keep $(KEEP))

fuzz-cuda: setup ## likewise with kernels in CUDA C++, by nvcc (COMPILER=clang: by clang)
	@cargo run -q --release --locked -p anywarp-kernel-tests --bin fuzz-cuda -- --seconds $(or $(SECONDS),600) \
		--seed $(or $(SEED),1) $(if $(COMPILER),--compiler $(COMPILER)) $(if $(KEEP),--keep $(KEEP))

random: build ## random programs, run whole: every back end, tiers and host (SECONDS=n, SEED=n; findings go to KEEP=folder)
	@scripts/random-kernels --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) $(if $(KEEP),--keep $(KEEP))

producers: build ## every program with the code of clang and of each of nvcc's modes
	@scripts/producers.py --all

tsan: setup ## the tests that use threads under ThreadSanitizer (needs a nightly toolchain with rust-src)
	@scripts/tsan

golden: setup ## replay what a GPU answered on every back end (CORPUS=folder)
	@scripts/golden $(CORPUS)

approximations: setup ## the largest errors of the fast approximations, over all operands (minutes)
	@cargo run -q --release --locked -p anywarp-kernel-tests --bin approximations

clients: build ## install programs that others wrote, and run their tests (CLIENTS=names, ALL=1)
	@clients/run $(if $(ALL),--all) $(CLIENTS)

setup: ## install the compilers and libraries that are missing
	@scripts/setup

clean: ## remove what was built (the installed tools in .cache stay)
	cargo clean
	rm -rf dist
