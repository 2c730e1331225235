# Receipts over a driver that has the kernels: test_receipts.sh SAMEBIT TOOL SOURCE WORK DRIVER MODELS. DRIVER is the fake one's path, or
# libcuda.so.1 (tools/llm-gpu-check).
case $5 in */*) fake=$(realpath "$5") ;; *) fake=$5 ;; esac
models=$(realpath "$6")
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
# Another token, and a log-probability whose last bit is another: each is found at its step, on both.
token=$(sed -n 's/.*"token": \([0-9]*\),/\1/p' host.json | sed -n 3p)
awk -v step=3 -v token=$(((token + 1) % 97)) '/"token":/ && ++n == step { sub(/[0-9]+/, token) } { print }' host.json >token.json
awk -v step=2 '/"logp":/ && ++n == step { match($0, /-[0-9.e-]+/); x = substr($0, RSTART, RLENGTH); sub(/-[0-9.e-]+/, sprintf("%.17g", x - 2 ^ (int(log(-x) / log(2) + 100) - 123))) }
    { print }' host.json >ulp.json
for device in "" "--device cuda --require-device"; do
    # shellcheck disable=SC2086
    runs 1 "$samebit" verify "$models/qwen3.gguf" token.json $device
    says out "token of step 2: "
    # shellcheck disable=SC2086
    runs 1 "$samebit" verify "$models/qwen3.gguf" ulp.json $device
    says out "logp of step 1: "
done
# One bit of a weight.
cp "$models/qwen3.gguf" weight.gguf
printf '\001' | dd of=weight.gguf bs=1 seek=$(($(wc -c <weight.gguf) - 40)) conv=notrunc 2>/dev/null
for device in "" "--device cuda --require-device"; do
    # shellcheck disable=SC2086
    runs 1 "$samebit" verify weight.gguf host.json $device
    says out "weights: "
done
sed '0,/"state": "[0-9a-f]\{4\}/s//"state": "0000/' host.json >state.json
runs 1 "$samebit" verify "$models/qwen3.gguf" state.json --device cuda --locate
says out "state of step 0: "
says out "located: each node computes what its reference evaluation does"
finish
