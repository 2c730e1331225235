# samebit devices, over the fake driver: test_devices.sh SAMEBIT TOOL SOURCE WORK FAKE.
fake=$(realpath "$5")
set -- "$1" "$2" "$3" "$4" - -
. "$3/tests/cli/common.sh"
unset FAKE_CUDA_VERSION FAKE_CUDA_DEVICES FAKE_CUDA_FAIL FAKE_CUDA_LOG
SAMEBIT_CUDA_DRIVER=$fake
export SAMEBIT_CUDA_DRIVER

export FAKE_CUDA_DEVICES="NVIDIA H200:9.0:150000000000;Tesla T4:7.5:16000000000"
runs 0 "$samebit" devices
silent err
says out "CUDA driver: 13.0 ($fake)"
says out "0  NVIDIA H200"
says out "compute capability 9.0"
says out "1  Tesla T4"
says out "not usable: "
runs 0 "$samebit" devices --json
json driver.state=ready driver.version=13.0 driver.library="$fake" driver.why= devices#=2 devices.1.name="Tesla T4" \
    devices.1.compute_capability=7.5 devices.0.memory_bytes=150000000000 devices.0.memory_free_bytes=150000000000

# Each way of having no GPU says which it is.
FAKE_CUDA_DEVICES= runs 0 "$samebit" devices
says out "CUDA driver: no device: "
FAKE_CUDA_DEVICES= runs 0 "$samebit" devices --json
json "driver.state=no device" devices#=0
SAMEBIT_CUDA_DRIVER=/no/such/driver runs 0 "$samebit" devices
says out "CUDA driver: missing: "
says out "/no/such/driver"
FAKE_CUDA_VERSION=11080 runs 3 "$samebit" devices
says out "CUDA driver: too old: "
says out "for CUDA 11.8"
FAKE_CUDA_FAIL=cuInit:0:803 runs 3 "$samebit" devices
says out "CUDA driver: failed: "
says out "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
FAKE_CUDA_FAIL=cuInit:0:803 runs 3 "$samebit" devices --json
json driver.state=failed

# A device that does not answer is listed all the same.
FAKE_CUDA_FAIL=cuDevicePrimaryCtxRetain:0:46 runs 0 "$samebit" devices
says out "0  NVIDIA H200"
says out "not usable: CUDA: cuDevicePrimaryCtxRetain failed with CUDA_ERROR_DEVICE_UNAVAILABLE"
FAKE_CUDA_FAIL=cuMemGetInfo:0:2 runs 0 "$samebit" devices --json
json devices.0.memory_free_bytes=null devices.0.kernels=null

refused "devices takes no operands" "$samebit" devices x
runs 0 "$samebit" --manual
says out "SAMEBIT\\_CUDA\\_DRIVER"
finish
