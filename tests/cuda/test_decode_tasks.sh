# What a token of a language model takes over a driver that has the kernels: test_decode_tasks.sh DECODE_TASKS MODELS FAKE_GPU CHOOSE.
# The logits are the same in every way, and a layer of Llama is eight kernels, nine where its keys have splits that clusters do not fold; all of it is one launch of
# a graph, one copy to the device and a kernel that collects words for faults. Where the device chooses, that is one kernel more, and the
# host gets a token in place of logits.
tasks=$1 models=$2 fake=$3 choose=$4 failed=0
fail() {
    echo "$*" >&2
    failed=1
}
for model in llama qwen3 gpt2; do
    first=
    for way in "" "--capture" "--alone" "--plain"; do
        # shellcheck disable=SC2086
        out=$("$tasks" $way "$models/$model" 9 3 "$fake") || fail "$model $way: exit code $?"
        digest=$(echo "$out" | sed -n 's/^  digest //p')
        first=${first:-$digest}
        [ -n "$digest" ] && [ "$digest" = "$first" ] || fail "$model $way: other logits"
        [ "$model$way" != llama ] || told=$out
    done
done
for prompt in 9 530; do
    alone=
    for way in "" "--capture"; do
        for attention in tiles clusters; do
            [ "$attention" = tiles ] && kernels=24 || kernels=22
            # shellcheck disable=SC2086
            out=$(SAMEBIT_CUDA_ATTENTION=$attention "$tasks" --context 2048 $way "$models/llama" "$prompt" 3 "$fake") ||
                fail "llama $prompt $way by $attention: exit code $?"
            digest=$(echo "$out" | sed -n 's/^  digest //p')
            alone=${alone:-$digest}
            [ -n "$digest" ] && [ "$digest" = "$alone" ] || fail "llama behind $prompt $way by $attention: other logits"
            [ -n "$way" ] || echo "$out" | grep -q " $kernels\.00 kernels" || fail "llama behind $prompt by $attention: $out"
        done
    done
done
echo "$told" | grep -q '1\.00 launches of graphs, 22\.00 kernels, copies: 1\.00 to the device of ' || fail "llama: $told"
chosen=$("$choose" "$models/llama" 9 20 "$fake") || fail "choosing: exit code $?"
# A token with its log-probability; top-k, top-p and min-p are one kernel more.
for kernels in 23:2 24:3; do
    [ "$(echo "$chosen" | grep -c "  1\.00 launches of graphs, ${kernels%:*}\.00 kernels, copies: 1\.00 to the device of .*, 1\.00 to the host of 16 bytes, 0\.00 ")" = "${kernels#*:}" ] ||
        fail "choosing: $chosen"
done
# Rows as long as those of larger models, and several sequences.
for sequences in "" "--batch 3"; do
    alone=
    for way in "" "--capture"; do
        # shellcheck disable=SC2086
        out=$("$tasks" $sequences $way "$models/wide" 9 2 "$fake") || fail "wide $sequences $way: exit code $?"
        digest=$(echo "$out" | sed -n 's/^  digest //p')
        alone=${alone:-$digest}
        [ -n "$digest" ] && [ "$digest" = "$alone" ] || fail "wide $sequences $way: other logits"
    done
done
# On a device with room for clusters, attention appends the new row, in one split and in several: 22 kernels without norms and rows joined.
for prompt in 9 530; do
    alone=
    for way in "" "--capture"; do
        # shellcheck disable=SC2086
        out=$(FAKE_CUDA_DEVICES="Fake H200:9.0:1073741824:132" "$tasks" --context 2048 $way "$models/wide" "$prompt" 2 "$fake") ||
            fail "wide $prompt $way with room: exit code $?"
        digest=$(echo "$out" | sed -n 's/^  digest //p')
        alone=${alone:-$digest}
        [ -n "$digest" ] && [ "$digest" = "$alone" ] || fail "wide behind $prompt $way with room: other logits"
        [ -n "$way" ] && kernels=22 || kernels=16
        echo "$out" | grep -q " $kernels\.00 kernels" || fail "wide behind $prompt $way with room: $out"
    done
done
exit "$failed"
