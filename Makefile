# The two commands of the README, and the others. The building itself is CMake's.
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: all demo test test-exhaustive sanitize fuzz bench-cpu install clean

all: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/build.ninja:
	tools/install-dependencies build
	cmake -G Ninja -S . -B $(BUILD) -DINVAR_TESTS=OFF

# Classifies handwritten digits and checks the digest of the result.
demo: all
	$(BUILD)/digits examples/digits

# Builds everything and runs all tests; closes with CTest's summary.
test:
	tools/install-dependencies test
	cmake -G Ninja -S . -B $(BUILD) -DINVAR_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

# Every input of every one-argument f32 function (2^32 each): about an hour on two cores.
test-exhaustive:
	tools/install-dependencies test
	cmake -G Ninja -S . -B $(BUILD) -DINVAR_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure -C exhaustive -L exhaustive

clean:
	rm -rf build build-*
