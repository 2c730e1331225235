# samebit profile: tables, trace, page.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx

runs 0 "$samebit" profile "$model" --runs 3 --warmup 1 --no-passes --set batch=2
silent err
says out "operator"
says out "Conv                            3"
says out "(between nodes)"
says out "conv2.out"
says out "3 runs: mean "
says out "GFLOP/s"
says out "GB/s"
runs 0 "$samebit" profile "$model" --runs 4 --no-passes --json --trace trace.json --html page.html
json run_ns#=4 nodes#=17 nodes.1.op=Conv nodes.1.calls_per_run=1.0 nodes.1.flops=19456 nodes.1.output_bytes=4096 \
    nodes.1.moved_bytes=4992
self_contained page.html
says page.html "Timeline of the fastest run"
cp trace.json out
json displayTimeUnit=ns traceEvents#=73 traceEvents.1.name="run 1" traceEvents.5.name=scaled traceEvents.5.ph=X \
    traceEvents.6.args.operator=Conv
runs 0 "$samebit" profile "$standard/test_loop11/model.onnx" --input "trip_count=$standard/test_loop11/test_data_set_0/input_0.pb" \
    --input "cond=$standard/test_loop11/test_data_set_0/input_1.pb" \
    --input "y=$standard/test_loop11/test_data_set_0/input_2.pb" --runs 2 --all
says out "(inside) "
says out "×5"
! grep -q "no kernel has taken over" out || fail "nodes with kernels are said to have none"
runs 0 "$samebit" profile "$model" --runs 2 --reference-evaluation
says out "of the time is in reference evaluation, which no kernel has taken over:"
says out "%  Fused "
says out ": the model was loaded with reference_only"
runs 0 "$samebit" profile "$model" --runs 2 --reference-evaluation --json
json nodes.0.why_reference="the model was loaded with reference_only"
"$tool" model chain 60 chain.onnx
runs 0 "$samebit" profile chain.onnx --runs 1 --warmup 0 --no-passes
says out "and 35 more: --all prints them"
runs 0 "$samebit" profile chain.onnx --runs 1 --warmup 0 --no-passes --all
! grep -q " more: " out || fail "--all leaves nodes out"

refused "--runs takes a number from 1 to 100000, not 0" "$samebit" profile "$model" --runs 0
refused "--warmup takes a number" "$samebit" profile "$model" --warmup none
runs 3 "$samebit" profile "$model" --trace no/such/folder/trace.json
says err "cannot write no/such/folder/trace.json"
finish
