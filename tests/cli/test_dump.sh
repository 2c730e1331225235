# samebit dump: text, JSON and pictures.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx

runs 0 "$samebit" dump "$model" --no-passes
says out "image: f32[batch,1,8,8]"
says out "probabilities: f32[batch,10]"
says out "conv1.weight: f32[16,1,3,3]"
says out "= Conv(scaled, conv1.weight: f32[16,1,3,3], conv1.bias: f32[16])"
says out "160 parameters · 19456*batch FLOP"
says out "17 nodes, 18,827 parameters (75.3 kB), 929074*batch FLOP"
runs 0 "$samebit" dump "$model"
says out "made of"
says out "18,827 parameters (75.3 kB), 929074*batch FLOP"
runs 0 "$samebit" dump "$model" --set batch=3 --no-passes
says out "f32[3,16,8,8]"
says out "2,787,222 FLOP"
refused "no input of the model has an extent of that name" "$samebit" dump "$model" --set time=3

runs 0 "$samebit" dump "$model" --no-passes --json
json nodes#=17 nodes.1.op=Conv nodes.1.parameters=160 nodes.1.flops=19456*batch nodes.1.flop_count=null \
    'nodes.1.bytes=4352*batch+640' nodes.1.byte_count=null \
    'nodes.1.inputs=["scaled","conv1.weight","conv1.bias"]' totals.parameters=18827 'inputs=["image"]'
runs 0 "$samebit" dump "$model" --json --set batch=2 --reference-evaluation
json nodes.0.kernel=reference totals.flop_count=1858148
runs 0 "$samebit" dump "$standard/test_loop11/model.onnx" --json
json nodes.0.op=Loop nodes.0.bodies.body.nodes.0.op=Identity totals.nodes_without_flops=1

runs 0 "$samebit" dump "$model" --svg digits.svg
silent out
self_contained digits.svg
says digits.svg "Conv + BatchNormalization + Relu"
says digits.svg "f32[batch,10]"
runs 0 "$samebit" dump "$model" --svg again.svg
cmp digits.svg again.svg || fail "the same graph gives another picture"
runs 0 "$samebit" dump "$model" --onnx written.onnx
silent out
silent err
runs 0 "$samebit" dump written.onnx --json
json "totals.flops=929074*batch"
runs 0 "$samebit" run written.onnx --input "$source/examples/digits/samples.npy" --digest
says out "$(cat "$source/examples/digits/digest.txt")"
runs 3 "$samebit" dump "$model" --onnx no/such/folder/written.onnx
says err "no/such/folder/written.onnx"
runs 0 "$samebit" dump "$model" --unrelated batch
says out "image: f32[image.0#1,1,8,8]"
runs 3 "$samebit" dump "$model" --unrelated batch,time
says err "no extent of an input is called 'time'"
for kind in chain wide; do
    "$tool" model $kind 1000 $kind.onnx
    runs 0 timeout 60 "$samebit" dump $kind.onnx --no-passes --svg $kind.svg
    self_contained $kind.svg
done
runs 0 "$samebit" dump chain.onnx --json --no-passes
json nodes#=1000 nodes.999.name=/layer/node_999 totals.flops=4000*batch

# Names of any bytes steer neither the terminal nor a page.
"$tool" model names 0 names.onnx
runs 0 "$samebit" dump names.onnx --no-passes
! LC_ALL=C grep -q "$(printf '\033')" out || fail "an escape sequence reached the terminal"
runs 0 "$samebit" dump names.onnx --no-passes --svg names.svg
self_contained names.svg
! grep -q "<script" names.svg || fail "a name became a script"
runs 0 "$samebit" dump names.onnx --no-passes --json
json nodes#=2 nodes.1.name=../../etc/passwd

# What was tolerated in a file.
tolerated=$source/tests/fuzz/seeds/onnx
runs 0 "$samebit" dump --warnings "$tolerated/tolerated_order.onnx"
says out "graph 'g': node 'y' stands before a node that it needs; nodes run in an order in which they can"
[ "$(wc -l <out)" -eq 1 ] || fail "not one line"
runs 0 "$samebit" dump "$tolerated/tolerated_order.onnx"
says out "1 warning about the file: --warnings shows it"
runs 0 "$samebit" dump "$tolerated/tolerated_inner.onnx"
says out "2 warnings about the file: --warnings shows them"
runs 0 "$samebit" dump --json "$tolerated/tolerated_declared.onnx"
json "warnings.1=value 'a' is declared as f32[9,9], but the nodes make it f32[n,4]" warnings#=2
runs 0 "$samebit" dump --warnings "$model"
silent out
silent err
runs 0 "$samebit" dump --json "$model"
json warnings#=0
runs 0 "$samebit" dump --warnings names.onnx
! LC_ALL=C grep -q "$(printf '\033')" out || fail "an escape sequence reached the terminal"

runs 3 "$samebit" dump missing.onnx
runs 3 "$samebit" dump "$model" --svg no/such/folder/graph.svg
says err "cannot write no/such/folder/graph.svg"
# Why a node has no kernel.
standing() {
    runs 0 "$samebit" dump --no-passes "$standard/$1/model.onnx"
    says out "reference ($2)"
}
standing test_if "If itself only runs graphs, whose nodes have kernels of their own"
standing test_transpose_default "Transpose shows its input in another way, which needs no kernel"
standing test_reversesequence_batch "ReverseSequence moves elements by its reference evaluation"
standing test_det_2d "Det has only its reference evaluation"
standing test_cast_FLOAT_to_STRING "Cast has no row loop for (f32) → string"
standing test_pow_types_int32_float32 "Pow has no row loop for (s32, f32) → s32"

finish
