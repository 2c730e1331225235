#!/bin/sh
# samebit perplexity, on the small models that tests/llm has written.
. "$(dirname "$0")/common.sh"
models=$work/../../llm/models
head -c 240 "$source/LICENSE" | tr -s ' \n' '  ' >text

perplexity() {
    runs 0 "$samebit" perplexity "$models/llama-text" "$@"
}
number() {
    sed -n "s/.*\"$1\": \([^,]*\),*$/\1/p" out
}

perplexity text --context 32 --digest
cp out full
says out "perplexity "
says out " windows of 32 positions, 16 apart, token 1 before each; mean negative log-probability "
for options in "--prefill-chunk 5" "--threads 1" "--isa scalar" "--no-passes" "--reference-evaluation" "--stride 16" "--method full"; do
    # shellcheck disable=SC2086
    perplexity text --context 32 --digest $options
    cmp -s out full || fail "something else with $options"
done
perplexity - --context 32 --digest <text
cmp -s out full || fail "something else of standard input"

# The tokens of the text, without the one before it, are the same text.
"$samebit" tokenize "$models/llama-text" --bare - <text >ids
perplexity ids --tokens --begin 1 --context 32 --digest
cmp -s out full || fail "something else of ids"
perplexity text --context 32 --json --begin none
json method=full context=32 stride=16 begin=null
count=$(number tokens)
[ "$(number scored)" -eq $((count - 1)) ] || fail "without a token before it, the first one is not foretold"
perplexity text --context 32 --json
json begin=1
[ "$(number scored)" -eq "$count" ] || fail "not every token counts"
[ "$(number windows)" -eq $(((count - 31 + 15) / 16 + 1)) ] || fail "another number of windows"

# e to the mean of what generate says of the tokens, where one window holds all.
perplexity text --json --context 512
mean=$(number mean)
runs 0 "$samebit" generate "$models/llama-text" --tokens "1,$(cat ids)" --count 0 --score-prompt --logprobs --context 512
[ "$(wc -l <out)" -eq $((count + 1)) ] || fail "not a line for each token"
awk -F'\t' -v mean="$mean" 'NR > 1 { sum -= $3 } END { off = sum / (NR - 1) - mean; exit !(off < 1e-7 && off > -1e-7) }' out ||
    fail "another mean than generate's: $mean"

perplexity text --method llama.cpp --context 32 --json
json method=llama.cpp stride=null begin=1
windows=$(((count + 1) / 32))
[ "$(number windows)" -eq $windows ] || fail "another number of llama.cpp's windows"
[ "$(number scored)" -eq $((windows * 15)) ] || fail "not the second half of each window"
perplexity text --context 32 --windows 2 --json --dtype f32
json windows=2 scored=47

refused "--method takes full or llama.cpp, not half" "$samebit" perplexity "$models/llama-text" text --method half
refused "--stride is for --method full" "$samebit" perplexity "$models/llama-text" text --method llama.cpp --stride 3
refused "--begin takes a token's id or none, not -1" "$samebit" perplexity "$models/llama-text" text --begin -1
refused "--begin 97: the model has 97 tokens" "$samebit" perplexity "$models/llama-text" text --begin 97
refused "--tokenizer and --plain are for text" "$samebit" perplexity "$models/llama-text" ids --tokens --plain
refused "perplexity takes MODEL FILE" "$samebit" perplexity "$models/llama-text"
runs 3 "$samebit" perplexity "$models/llama-text" nowhere
says err "nowhere: cannot be opened: No such file"
runs 3 "$samebit" perplexity "$models/llama-text" .
says err ".: cannot be read: Is a directory"
runs 3 "$samebit" perplexity "$models/llama-text" text --context 32 --stride 32
says err "the stride may be from 1 to 31"
printf a >short
runs 3 "$samebit" perplexity "$models/llama-text" short --method llama.cpp --context 32
says err "a text of 1 tokens has no window of 32 positions in which a token counts"
runs 0 "$samebit" perplexity "$models/llama-text" short
says out "perplexity "
runs 0 "$samebit" perplexity "$models/llama-text" short --json
json standard_error=null
: >empty
runs 3 "$samebit" perplexity "$models/llama-text" empty
says err "a text of 0 tokens"
runs 3 "$samebit" perplexity "$models/gpt2" text
says err "has neither tokenizer.json nor tokenizer.model"
finish
