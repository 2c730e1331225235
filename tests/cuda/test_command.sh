# The command on a device, over a driver that has the kernels: test_command.sh SAMEBIT TOOL SOURCE WORK FAKE_GPU PLAIN, where PLAIN is
# the command as it is built here, SAMEBIT the same with kernels for the fake.
fake=$(realpath "$5") plain=$6
set -- "$1" "$2" "$3" "$4" - /usr/share/libonnx-testdata/data/node
. "$3/tests/cli/common.sh"
unset FAKE_CUDA_VERSION FAKE_CUDA_DEVICES FAKE_CUDA_FAIL FAKE_CUDA_LOG
model=$digits/digits.onnx
"$tool" model chain 10 chain.onnx
mkdir folder
"$tool" array 1 1 2 folder/x.npy
chain="chain.onnx --input x=folder/x.npy --no-passes"

# ---- without a GPU ----

export SAMEBIT_CUDA_DRIVER=/no/such/driver
for command in run profile compare bench; do
    rest=
    [ $command = run ] || [ $command = compare ] || rest="--runs 1"
    runs 3 "$plain" $command chain.onnx --input x=folder/x.npy --device cuda $rest
    silent out
    says err "no CUDA driver: /no/such/driver: "
    says err "install NVIDIA's driver"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $command"
done
runs 3 "$plain" run chain.onnx --input x=folder/x.npy --device auto --require-device
says err "no CUDA driver"
runs 0 "$plain" run chain.onnx --input x=folder/x.npy --digest
silent err
mv out cpu
runs 0 "$plain" run chain.onnx --input x=folder/x.npy --digest --device auto
says err "samebit: running on the CPU: no CUDA driver: /no/such/driver"
cmp out cpu || fail "--device auto gives other bits"
runs 0 "$plain" run chain.onnx --input x=folder/x.npy --digest --device auto --no-passes --explain-placement
says out "cpu   /layer/node_0 (Relu) "
says out "no device: all nodes that ran, 10, on the CPU"
! grep -q "on the device" out || fail "a run without a device says what is on one"
head -2 out | cmp - cpu || fail "--explain-placement gives other bits"
runs 3 "$plain" compare chain.onnx --input x=folder/x.npy --device auto
says err "the CPU is all there is to compare: give --reference FILE|DIR"
refused "--require-device needs --device cuda" "$plain" run chain.onnx --require-device
refused "--device takes cpu, cuda, cuda:N or auto, not tpu" "$plain" run chain.onnx --device tpu
refused "--device takes cpu, cuda, cuda:N or auto, not cuda:x" "$plain" run chain.onnx --device cuda:x
refused "compare needs --reference FILE|DIR to compare with, --device cuda to compare with the CPU" \
    "$plain" compare chain.onnx --device cpu

export SAMEBIT_CUDA_DRIVER="$fake"
SAMEBIT_CUDA_ATTENTION=nonsense runs 3 "$samebit" run $chain --device cuda
says err "SAMEBIT_CUDA_ATTENTION is 'nonsense': it is quickest, tiles, warpgroups, clusters or streams"
SAMEBIT_CUDA_ATTENTION=warpgroups runs 0 "$samebit" run $chain --device cuda
runs 3 "$samebit" run chain.onnx --input x=folder/x.npy --device cuda:7
says err "device 7"
refused "--graphs takes auto, off, capture or build, not sometimes" \
    "$samebit" run chain.onnx --input x=folder/x.npy --device cuda --graphs sometimes

FAKE_CUDA_DEVICES= runs 3 "$samebit" run chain.onnx --input x=folder/x.npy --device cuda
says err "no CUDA device"
FAKE_CUDA_DEVICES="Tesla T4:7.5:16000000000" runs 3 "$samebit" run chain.onnx --input x=folder/x.npy --device cuda
says err "Tesla T4"
FAKE_CUDA_FAIL=cuInit:0:803 runs 3 "$samebit" run chain.onnx --input x=folder/x.npy --device cuda
says err "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
FAKE_CUDA_DEVICES= runs 0 "$samebit" run chain.onnx --input x=folder/x.npy --device auto --digest
says err "samebit: running on the CPU: "
cmp out cpu || fail "--device auto gives other bits"

# ---- a device only where it is quicker ----

runs 0 "$samebit" run chain.onnx --input x=folder/x.npy --digest --device auto --threads 1 --explain-placement
says out "estimated: "
says out "runs on the CPU; --device cuda forces the other"
says out ": the run is estimated to take "
says out "0 nodes on the device, "
head -2 out | cmp - cpu || fail "--device auto gives other bits"
: >nothing.txt
runs 0 "$samebit" run chain.onnx --input x=folder/x.npy --device auto --allow-cpu nothing.txt
runs 0 "$samebit" run chain.onnx --input x=folder/x.npy --digest --device cuda --explain-placement
! grep -q "estimated" out || fail "--device cuda estimates"
! grep -q "^0 nodes on the device" out || fail "--device cuda leaves all to the CPU"
runs 0 "$samebit" run chain.onnx --input x=folder/x.npy --device auto --require-device
runs 0 "$samebit" compare chain.onnx --input x=folder/x.npy --device auto

# ---- the schedule of a product ----

"$tool" model product 1 product.onnx
"$tool" array 1 1 4 folder/square.npy
runs 0 "$samebit" run product.onnx --input x=folder/square.npy --device cuda --explain-placement
says out "cuda  square (MatMul) matmul: general-small, since A needs a stride of 1, and an address and other strides of multiples"
runs 0 "$samebit" profile product.onnx --input x=folder/square.npy --device cuda --runs 1
says out "general-small"

# ---- runs in flight ----

for graphs in off capture build; do
    runs 0 "$samebit" bench $chain --device cuda --graphs $graphs --runs 9 --queue 3 --explain-placement
    silent err
    says out "3 runs in flight"
    says out "9 runs: min "
    says out " nodes on the device, 0 on the CPU"
    says out "runs are left to the device"
done
runs 0 "$samebit" bench $chain --device cuda --runs 3 --queue 2 --force-cpu Relu --explain-placement
says out "(Relu): it runs on the CPU"

# ---- placement ----

runs 0 "$samebit" run $chain --device cuda --digest --explain-placement
silent err
says out "  copy  x to device"
says out "cuda  /layer/node_0 (Relu) elementwise"
says out "10 nodes on the device, 0 on the CPU, 2 copies"
head -2 out | cmp - cpu || fail "the device gives other bits"
runs 0 "$samebit" run $chain --device cuda --digest --require-device
cmp out cpu || fail "the device gives other bits"
runs 0 "$samebit" run $chain --device cuda --digest --force-cpu Neg,node_4 --explain-placement
says out 'cpu   /layer/node_1 (Neg)'
says out ': forced to the CPU by "Neg"'
says out 'cpu   /layer/node_4 (Add)'
says out ': forced to the CPU by "node_4"'
says out " on the device, 5 on the CPU, "
head -2 out | cmp - cpu || fail "forced nodes give other bits"
runs 3 "$samebit" run $chain --device cuda --force-cpu Neg --require-device
says err "4 nodes would run on the CPU, and the device is required: /layer/node_1 (Neg): forced to the CPU by"
silent out

: >nothing.txt
runs 1 "$samebit" run $chain --device cuda --force-cpu Neg --allow-cpu nothing.txt
says err "samebit: Neg ran on the CPU, which nothing.txt does not allow: forced to the CPU by"
printf '# operators\nNeg\twe force it\n' >neg.txt
runs 0 "$samebit" run $chain --device cuda --force-cpu Neg --allow-cpu neg.txt
silent err
runs 0 "$samebit" run $chain --device cuda --allow-cpu neg.txt
says err "samebit: neg.txt allows Neg on the CPU, where it no longer runs: the line can go"
runs 0 "$samebit" run $chain --device cuda --allow-cpu nothing.txt
silent err
runs 3 "$samebit" run $chain --device cuda --allow-cpu missing.txt
says err "missing.txt"

# ---- comparing with the CPU ----

for options in "" "--cumulative" "--passes" "--passes --cumulative" "--force-cpu Conv,Relu" "--passes --force-cpu Fused" \
    "--reference-evaluation" "--isa scalar"; do
    # shellcheck disable=SC2086 # options are words
    runs 0 "$samebit" compare "$model" --device cuda --set batch=2 $options
    says out " 0 different)"
    says out " ran on Fake H200, "
    says out "17 nodes: "
    silent err
done
runs 0 "$samebit" compare "$model" --device cuda --set batch=2 --force-cpu norm2 --json
json nodes=17 compared=17 equal=17 not_compared=0 against=cpu "device=Fake H200" outputs.0.ran=cuda outputs.5.op=BatchNormalization \
    outputs.5.ran=cpu 'outputs.5.why_cpu=forced to the CPU by "norm2"' first=null
# What a fused node keeps to itself is named, and so is what a pass removes; nothing is left out in silence.
runs 0 "$samebit" compare "$model" --device cuda --passes --json --force-cpu Fused
json nodes=17 not_compared=7 outputs.1.output=conv1.out outputs.1.state="not compared" \
    "outputs.1.why=inside the fused node conv1.out+norm1.out+relu1.out" outputs.3.output=relu1.out outputs.3.state=equal
# A fused node that is computed node by node shows everything.
runs 0 "$samebit" compare "$model" --device cuda --passes --force-cpu Fused --reference-evaluation
says out "17 nodes: 17 compared (17 equal, 0 different), 0 not compared"
runs 0 "$samebit" compare chain.onnx --input x=folder/x.npy --device cuda --passes --verbose
says out "(inside the fused node "
says out "10 nodes: "
runs 0 "$samebit" compare "$standard/test_loop11/model.onnx" --device cuda \
    --input "trip_count=$standard/test_loop11/test_data_set_0/input_0.pb" \
    --input "cond=$standard/test_loop11/test_data_set_0/input_1.pb" \
    --input "y=$standard/test_loop11/test_data_set_0/input_2.pb" --verbose
says out " 0 different), 0 not compared"

# Recorded on the CPU, compared on the device, and the other way round.
runs 0 "$samebit" compare $model --record cpu.npz --set batch=3
runs 0 "$samebit" compare $model --record device.npz --set batch=3 --device cuda
says out "18 values recorded, 0 left out"
runs 0 "$samebit" compare "$model" --reference device.npz
says out "17 nodes: 17 compared (17 equal, 0 different), 0 not compared"
runs 0 "$samebit" compare "$model" --reference cpu.npz --device cuda --html page.html
says out "17 nodes: 17 compared (17 equal, 0 different), 0 not compared"
self_contained page.html
says page.html "Where nodes ran, and how long"
says page.html "No node differs"
says page.html "Everything that was compared has the same bits."

# One element that is not what it should be is found, where it is, and goes no further.
"$tool" array 1 1 2 folder/v0.npy
"$tool" array -1 -1 2 changed.npy
size=$(wc -c <changed.npy)
head -c $((size - 4)) changed.npy >folder/v1.npy
printf '\000\000\340\300' >>folder/v1.npy # -7 in place of -8
runs 1 "$samebit" compare chain.onnx --reference folder --device cuda --verbose --html page.html
says out "   0  cuda  Relu /layer/node_0 → v0: equal: equal in 8 elements"
says out "the first node that differs is number 1, Neg /layer/node_1, in its output v1 (f32[2,4], kernel elementwise, on the device):"
says out "1 of 8 elements differ; worst at [1,3]: -8 where -7 is recorded, "
says out "10 nodes: 2 compared (1 equal, 1 different), 8 not compared"
says out "10 nodes ran on Fake H200, 0 on the CPU, with 2 copies between them"
self_contained page.html
says page.html "The first node that differs is number 1"
runs 1 "$samebit" compare chain.onnx --reference folder --device cuda --force-cpu node_1 --cumulative
says out "-8 where -7 is recorded"
says out "on the CPU: Neg /layer/node_1: forced to the CPU by"

# ---- profiles ----

runs 0 "$samebit" profile $chain --device cuda --runs 3 --all --force-cpu node_2
says out "(copies to the device) "
says out "(copies to the host) "
says out 'forced to the CPU by "node_2"'
says out "on Fake H200: without waiting for each node "
runs 0 "$samebit" profile $chain --device cuda --runs 3 --json --force-cpu node_2 --html page.html --trace trace.json
json "device=Fake H200" nodes#=10 transfers#=4 nodes.0.on=cuda nodes.0.device_tasks_per_run=1.0 nodes.2.on=cpu \
    'nodes.2.why_cpu=forced to the CPU by "node_2"' transfers.0.value=x transfers.0.to=device transfers.0.bytes=32 \
    transfers.0.copies_per_run=1.0
self_contained page.html
says page.html "at work on the device, stream 1"
says page.html "copies to the device"
cp trace.json out
# Names of two processes and two threads, then three runs, their 14 calls each, and their tasks: 9 kernels and 4 copies each.
json traceEvents#=88 traceEvents.0.args.name=samebit traceEvents.2.name=process_name "traceEvents.2.args.name=Fake H200" \
    "traceEvents.3.args.name=stream 1" "traceEvents.4.name=run 1" traceEvents.7.cat=copy traceEvents.7.args.bytes=32 \
    traceEvents.49.cat=copy traceEvents.49.pid=2 traceEvents.49.args.value=x traceEvents.50.cat=kernel \
    traceEvents.50.args.node=/layer/node_0 traceEvents.50.args.operator=Relu
for mode in auto build capture; do
    runs 0 "$samebit" profile $chain --device cuda --runs 1 --warmup 0 --graphs $mode --explain-placement
    says out "with 1 group of nodes replayed as graphs"
    says out "1 groups of nodes for graphs, 1 recorded"
done
runs 0 "$samebit" profile $chain --device cuda --runs 1 --graphs off
says out "with 0 groups of nodes replayed as graphs"
finish
