# The text of examples/austen over a driver that has the kernels: test_tell.sh SAMEBIT TOOL SOURCE WORK DRIVER.
case $5 in */*) fake=$(realpath "$5") ;; *) fake=$5 ;; esac
set -- "$1" "$2" "$3" "$4" - -
. "$3/tests/cli/common.sh"
austen=$source/examples/austen
export SAMEBIT_CUDA_DRIVER="$fake"
runs 0 "$austen/tell" "$samebit" --device cuda --require-device --receipt receipt.json
says out "the documented bits"
cmp receipt.json "$austen/receipt.json" || fail "another receipt on the device"
runs 0 "$samebit" verify "$austen/model" "$austen/receipt.json" --device cuda --require-device --prefill-chunk 33
says out "the same: 100 of 100 steps checked"
sed 's/"seed": "1811"/"seed": "1812"/' receipt.json >seed.json
runs 1 "$samebit" verify "$austen/model" seed.json --device cuda
says out "settings: "
finish
