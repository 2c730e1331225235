# Many requests over a driver that has the kernels: test_batch.sh SAMEBIT TOOL SOURCE WORK DRIVER MODELS.
case $5 in */*) fake=$(realpath "$5") ;; *) fake=$5 ;; esac
models=$(realpath "$6")
set -- "$1" "$2" "$3" "$4" - -
. "$3/tests/cli/common.sh"
export SAMEBIT_CUDA_DRIVER="$fake"
cat >requests.jsonl <<'END'
{"tokens": [1, 50, 7, 23, 88, 4, 61, 9, 13, 8, 5, 33, 90, 2, 17, 71, 60, 42, 12], "samples": 2, "temperature": 1, "count": 4}
{"tokens": [5, 6], "count": 18}
{"tokens": [1, 50, 7, 23, 88, 4, 61, 9, 13, 8, 5, 33, 90, 2, 17, 71, 60, 42, 13, 3], "count": 3}
END
for model in llama gemma2; do
    for dtype in bf16 f16 f32; do
        generate="$models/$model --dtype $dtype --batch requests.jsonl --ignore-stops"
        # shellcheck disable=SC2086
        runs 0 "$samebit" generate $generate
        cp out host
        # shellcheck disable=SC2086
        runs 0 "$samebit" generate $generate --device cuda --require-device
        cmp -s out host || fail "$model in $dtype: other answers on the device"
    done
done
# On so few pages that requests wait, in pieces.
# shellcheck disable=SC2086
runs 0 "$samebit" generate $generate --device cuda --require-device --pages 4 --prefill-chunk 5
cmp -s out host || fail "other answers on few pages"
finish
