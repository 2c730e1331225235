# Requests of all lengths in a queue over a driver that has the kernels: test_queue_steps.sh QUEUE MODELS FAKE_GPU. Their tokens are the
# same whatever is in a step beside them, also where it has more rows than are needed; and other requests' steps find recordings.
queue=$1 models=$2 fake=$3 failed=0
fail() {
    echo "$*" >&2
    failed=1
}
for model in llama gemma2; do
    alone=
    for way in "--parallel 1" "--parallel 3 --rows 48" "--parallel 9"; do
        # shellcheck disable=SC2086
        out=$("$queue" --requests 7 --passes 2 --prompt 64 --new 16 $way "$models/$model" "$fake") || fail "$model $way: exit code $?"
        digests=$(echo "$out" | sed 's/.* digest //')
        alone=${alone:-$digests}
        [ "$(echo "$digests" | wc -l)" = 2 ] && [ "$digests" = "$alone" ] || fail "$model $way: other tokens: $out"
        # Of the last pass half of the steps are one launch of a graph.
        steps=$(echo "$out" | sed -n '2s/.*; \([0-9]*\) steps.*/\1/p') launches=$(echo "$out" | sed -n '2s/.*; \([0-9]*\) launches.*/\1/p')
        [ "$((2 * launches))" -ge "$steps" ] || fail "$model $way: recordings are not found again: $out"
    done
done
exit $failed
