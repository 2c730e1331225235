# samebit bench: statistics that fit each other.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx

runs 0 "$samebit" bench "$model" --runs 5 --threads 1 --set batch=2
silent err
says out "1 thread"
says out "5 runs: min "
says out "runs per second"
runs 0 "$samebit" bench "$model" --runs 7 --isa scalar --json
json runs=7 isa=scalar threads=0 flops=929074.0
sorted=$(grep -o '"\(min\|median\|p90\|max\)_ms": [0-9.e-]*' out | cut -d' ' -f2)
[ "$(echo "$sorted" | LC_ALL=C sort -g)" = "$sorted" ] || fail "min, median, p90 and max are out of order: $sorted"
runs 0 "$samebit" bench "$model" --seconds 0
says out "1 run: "
runs 0 "$samebit" bench "$model" --runs 5 --queue 3 --threads 1
says out "3 runs in flight"
says out "5 runs: min "
runs 0 "$samebit" bench "$model" --runs 2 --queue 4 --warmup 0 --json
json runs=2 queue=4
runs 0 "$samebit" bench "$model" --runs 1 --explain-placement
says out "no device: all nodes that ran, 10, on the CPU"
# Language models: those that tests/llm has written.
models=$work/../../llm/models
bench() {
    runs 0 "$samebit" bench "$models/gemma3" --llm --runs 2 --warmup 0 --threads 1 "$@"
}
bench --prompts 7,20 --count 3
silent err
says out "gemma3, bf16, "
says out "prompt 20: "
says out "  then 2: "
! grep -q bandwidth out || fail "a share of a bandwidth that nobody knows"
bench --prompts 7 --count 3 --bandwidth 10 --dtype f32
says out ", f32, "
says out "% of the bandwidth"
bench --prompts 7,20 --count 3 --lines
[ "$(grep -cE '^bench (prefill|decode)/gemma3/b1/c(7|20) samebit=[0-9.]+ spread=[0-9.]+ unit=tokens/s' out)" -eq 4 ] || fail "not four lines"
bench --prompts 7 --count 3 --json
json runs=2 batch=1 dtype=bf16
says out '"new_tokens": 3'
says out '"bandwidth_share": null'
bench --prompts 7 --count 3 --explain-step
says out "a token behind 7: "
says out "layer.*.attention (PagedAttention)"
bench --prompts 7 --count 3 --explain-step --bandwidth 10 --json
json step.behind=7
says out '"op": "PagedAttention"'
refused "--explain-step is for --llm" "$samebit" bench "$models/gemma3" --explain-step
refused "--seconds is not for --llm" "$samebit" bench "$models/gemma3" --llm --seconds 1
refused "--set is not for --llm" "$samebit" bench "$models/gemma3" --llm --set a=1
refused "--prompts is for --llm" "$samebit" bench "$model" --prompts 3
refused "--dtype is for --llm" "$samebit" bench "$model" --dtype f32
refused "--prompts takes lengths from 1 on with commas between, not 3,,4" "$samebit" bench "$models/gemma3" --llm --prompts 3,,4
refused "--prompts takes lengths from 1 on with commas between, not 3," "$samebit" bench "$models/gemma3" --llm --prompts 3,
refused "--prompts takes lengths from 1 on with commas between, not 0" "$samebit" bench "$models/gemma3" --llm --prompts 0
refused "--count takes a number from 2" "$samebit" bench "$models/gemma3" --llm --count 1
refused "--bandwidth takes a number above 0, not -1" "$samebit" bench "$models/gemma3" --llm --bandwidth -1
runs 3 "$samebit" bench "$model" --llm
says err "GGUF"

refused "--queue takes a number from 1 to 16" "$samebit" bench "$model" --queue 17
refused "--runs and --seconds exclude each other" "$samebit" bench "$model" --runs 3 --seconds 1
refused "--seconds takes a number of at least 0, not -1" "$samebit" bench "$model" --seconds -1
refused "--seconds takes a number of at least 0, not inf" "$samebit" bench "$model" --seconds inf
refused "--runs takes a number from 1" "$samebit" bench "$model" --runs 1e3
refused "input x cannot be made up: give it with --input" "$samebit" bench "$standard/test_identity_sequence/model.onnx"
finish
