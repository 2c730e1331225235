# samebit compare: against recorded tensors, ours and another library's.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx reference=$digits/reference.npz

runs 0 "$samebit" compare "$model" --reference "$reference" --tolerance 1e-5,1e-4
says out "17 nodes: 17 compared"
says out "0 different), 0 not compared"
runs 0 "$samebit" compare "$model" --reference "$reference" --tolerance 1e-5,1e-4 --cumulative --html page.html
self_contained page.html
says page.html "No node differs"
runs 1 "$samebit" compare "$model" --reference "$reference" --html page.html
says out "the first node that differs is number "
says out "apart"
self_contained page.html
says page.html "The first node that differs is number"

# What one instruction set records, every other repeats bit for bit.
runs 0 "$samebit" compare "$model" --record ours.npz --set batch=3
says out "18 values recorded, 0 left out"
for options in "--isa scalar --threads 1" "--reference-evaluation" "--cumulative --threads 2" "--passes"; do
    # shellcheck disable=SC2086 # options are words
    runs 0 "$samebit" compare "$model" --reference ours.npz $options
    says out " 0 different)"
done

runs 0 "$samebit" compare "$model" --reference ours.npz --json
json nodes=17 compared=17 equal=17 different=0 first=null outputs.1.op=Conv outputs.1.state=equal

# A chain of Relu, Neg, …: the first value equals the input, the second is its negative.
"$tool" model chain 10 chain.onnx
mkdir folder
"$tool" array 1 1 2 folder/x.npy
"$tool" array 2 1 2 folder/v0.npy
"$tool" array -2 -1 2 folder/v1.npy
runs 1 "$samebit" compare chain.onnx --reference folder
says out "the first node that differs is number 0, Relu /layer/node_0, in its output v0 (f32[2,4], kernel "
says out "8 of 8 elements differ; worst at [0,0]: 1 where 2 is recorded, 8388608 ulps apart"
says out "not compared: v2, v3, "
says out " (not recorded)"
says out "10 nodes: 2 compared (1 equal, 1 different), 8 not compared"
runs 1 "$samebit" compare chain.onnx --reference folder --cumulative
says out "10 nodes: 2 compared (0 equal, 2 different), 8 not compared"
runs 1 "$samebit" compare chain.onnx --reference folder --json --tolerance 0.5,0
json compared=2 different=1 first=/layer/node_0 'outputs.0.worst.index=[0,0]' outputs.0.worst.ulps=8388608 \
    outputs.0.counts.outside=8 'outputs.2.why=not recorded'
runs 0 "$samebit" compare chain.onnx --reference folder --tolerance 1,0
says out "1 within the tolerance, 0 different"
runs 1 "$samebit" compare chain.onnx --reference folder --verbose --html page.html
says out "   1  Neg /layer/node_1 → v1: equal: equal in 8 elements"
self_contained page.html

# Another shape is a difference, not a failure.
"$tool" array 1 1 3 folder/v1.npy
runs 1 "$samebit" compare chain.onnx --reference folder --verbose
says out "f32[2,4] cannot be compared with f32[3,4]"
# Names in a model do not lead out of the folder.
"$tool" model names 0 names.onnx
mkdir -p inner/folder
"$tool" array 1 1 2 inner/folder/x.npy
"$tool" array 1 1 2 inner/folder/y.npy
runs 0 "$samebit" compare names.onnx --reference inner/folder
says out "2 nodes: 1 compared (1 equal, 0 different), 1 not compared"
# The standard's own test data.
runs 0 "$samebit" compare "$standard/test_loop11/model.onnx" --reference "$standard/test_loop11/test_data_set_0"
says out "1 node: 1 compared (1 equal, 0 different), 0 not compared"
# Sequences, item by item; optionals that hold nothing; outputs that no node makes.
for name in sequence_insert_at_back sequence_map_add_2_sequences if_opt identity_opt loop16_seq_none constant; do
    runs 0 "$samebit" compare "$standard/test_$name/model.onnx" --reference "$standard/test_$name/test_data_set_0"
    says out "1 node: 1 compared (1 equal, 0 different), 0 not compared"
done
cp -r "$standard/test_sequence_map_identity_1_sequence" sequence
cp "$standard/test_sequence_map_add_1_sequence_1_tensor/test_data_set_0/output_0.pb" sequence/test_data_set_0/output_0.pb
runs 1 "$samebit" compare sequence/model.onnx --reference sequence/test_data_set_0
says out "worst at item 0 ["
runs 1 "$samebit" compare "$standard/test_bernoulli/model.onnx" --reference "$standard/test_bernoulli/test_data_set_0"
says out "each implementation draws its own"

refused "compare needs --reference FILE|DIR" "$samebit" compare "$model"
refused "compare needs --reference FILE|DIR" "$samebit" compare "$model" --reference ours.npz --record again.npz
for tolerance in 1 1, ,1 1,x -1,0 nan,0 1,2,3; do
    refused "--tolerance takes ATOL,RTOL" "$samebit" compare "$model" --reference ours.npz --tolerance "$tolerance"
done
runs 3 "$samebit" compare "$model" --reference missing.npz
says err "missing.npz"
runs 3 "$samebit" compare "$model" --reference "$digits/labels.npy" --input "image=$digits/samples.npy"
says err "no node could be compared"
runs 3 "$samebit" compare "$model" --record no/such/folder/all.npz
finish
