#!/bin/sh
# samebit generate and samebit info, on the small models that tests/llm has written.
. "$(dirname "$0")/common.sh"
models=$work/../../llm/models

runs 0 "$samebit" info "$models/gemma3"
says out "family       Gemma 3 (safetensors)"
says out "5 layers see the last 9 keys"
runs 0 "$samebit" info "$models/llama.gguf" --json
says out '"format": "GGUF"'

generate() {
    runs 0 "$samebit" generate "$@" --tokens 1,50,7,23,88,4,61 --count 9 --ignore-stops --digest
}
generate "$models/llama"
cp out whole
[ "$(sed -n 1p out | wc -w)" -eq 9 ] || fail "not 9 tokens"
for options in "--prefill-chunk 1" "--prefill-chunk 3" "--threads 1" "--isa scalar" "--no-passes" "--reference-evaluation"; do
    # shellcheck disable=SC2086
    generate "$models/llama" $options
    cmp -s out whole || fail "other tokens or another digest with $options"
done
generate "$models/llama.gguf"
cmp -s out whole || fail "other tokens or another digest from the GGUF file"
generate "$models/llama" --temperature 1 --seed 5
cp out sampled
generate "$models/llama" --temperature 1 --seed 5 --top-k 1
cut -d' ' -f1-9 out | head -1 >first
head -1 whole | cut -d' ' -f1-9 | cmp -s - first || fail "the only one of one token is not the likeliest"
generate "$models/llama" --temperature 1 --seed 6
cmp -s out sampled && fail "two seeds give the same tokens"

runs 0 "$samebit" generate "$models/gpt2" --tokens 1,2,3 --count 1 --score-prompt --logprobs --json
says out '"given": true'
says out '"logp": -'
says out '"end": "limit"'
runs 0 "$samebit" generate "$models/gpt2" --tokens 5 --count 2 --ignore-stops

runs 3 "$samebit" generate "$models/llama" --tokens 97
says err "token 0 of 1 is 97; the model has 97"
runs 3 "$samebit" generate "$models"
says err "has no config.json"
runs 3 "$samebit" generate "$models/llama/config.json"
says err "no GGUF file"
runs 3 "$samebit" generate "$models/llama" --tokens 1,2,3 --context 2
says err "more than the context of 2"
runs 2 "$samebit" generate "$models/llama" --tokens 1,x
says err "--tokens: 'x'"
runs 2 "$samebit" generate "$models/llama" --dtype f64
says err "--dtype f64"
runs 2 "$samebit" generate "$models/llama" --top-p 0
says err "--top-p 0"
finish
