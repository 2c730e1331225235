# Receipts over a driver that has the kernels: test_receipts.sh SAMEBIT TOOL SOURCE WORK FAKE_GPU MODELS.
fake=$(realpath "$5") models=$6
set -- "$1" "$2" "$3" "$4" - -
. "$3/tests/cli/common.sh"
export SAMEBIT_CUDA_DRIVER="$fake"
for model in llama gemma2 gpt2 qwen3.gguf; do
    for dtype in bf16 f16 f32; do
        generate="$models/$model --dtype $dtype --tokens 1,50,7,23,88 --count 4 --ignore-stops --temperature 0.7 --seed 9"
        # shellcheck disable=SC2086
        runs 0 "$samebit" generate $generate --receipt device.json --device cuda --require-device
        # shellcheck disable=SC2086
        runs 0 "$samebit" generate $generate --receipt host.json
        cmp device.json host.json || fail "$model in $dtype: two receipts"
        runs 0 "$samebit" verify "$models/$model" device.json
        says out "the same: 4 of 4 steps checked"
        runs 0 "$samebit" verify "$models/$model" host.json --device cuda --require-device --prefill-chunk 3
        says out "the same: 4 of 4 steps checked"
    done
done
runs 1 "$samebit" verify "$models/qwen3" host.json --device cuda
says out "weights: "
sed 's/"seed": "9"/"seed": "10"/' host.json >seed.json
runs 1 "$samebit" verify "$models/qwen3.gguf" seed.json --device cuda
says out "settings: "
sed '0,/"state": "[0-9a-f]\{4\}/s//"state": "0000/' host.json >state.json
runs 1 "$samebit" verify "$models/qwen3.gguf" state.json --device cuda --locate
says out "state of step 0: "
says out "located: each node computes what its reference evaluation does"
finish
