#!/bin/sh
# samebit generate under a schema, with penalties and biases, and verifying what came of it.
. "$(dirname "$0")/common.sh"
cp -r "$work/../../llm/models/llama" model
# A token for each character of ASCII but ~ and q.
awk 'BEGIN {
    printf "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"\304\240\":4"
    id = 5
    for (c = 33; c < 126; c++)
        if (c != 113)
            printf ",\"%s%c\":%d", (c == 34 || c == 92) ? "\\" : "", c, id++
    print "}},\"decoder\":{\"type\":\"ByteLevel\"}}"
}' >model/tokenizer.json
schema='{"type":"object","properties":{"a":{"enum":["x","y"]},"n":{"type":"integer","minimum":0,"maximum":9}},"required":["a","n"],"additionalProperties":false}'
printf '%s\n' "$schema" >schema.json
seed=0
generate() {
    runs 0 "$samebit" generate model --threads 1 --tokens 1,50,7 --count 55 --temperature 1 --seed $seed --stats "$@"
}
while [ $seed -lt 4 ]; do
    generate --json-schema "$schema" --receipt receipt.json
    head -1 out >text
    if grep -q "ended by stop" err; then
        cp text ended
        "$tool" json text n="$(sed 's/.*"n": *\([0-9]\).*/\1/' text)" || fail "no JSON: $(cat text)"
    fi
    [ $seed -gt 0 ] || generate --json-schema schema.json
    head -1 out | cmp -s - text || fail "another text by the schema in a file"
    runs 0 "$samebit" verify model receipt.json
    says out "the same: "
    seed=$((seed + 1))
done
runs 0 "$samebit" verify model receipt.json --tokenizer model/tokenizer.json --sample 2
"$samebit" generate model --tokens 1,50,7 --count 55 --temperature 1 --seed 3 --json-schema - <schema.json >out 2>err
head -1 out | cmp -s - text || fail "another text by the schema from standard input"
[ -s ended ] || fail "no text came to its end"
sed 's/"maximum\\":9/"maximum\\":8/; s/\\"maximum\\":9/\\"maximum\\":8/' receipt.json >changed.json
cmp -s receipt.json changed.json && fail "the schema was not changed"
runs 1 "$samebit" verify model changed.json
says out "settings: "
runs 3 "$samebit" verify "$work/../../llm/models/llama" receipt.json
says err "has neither tokenizer.json nor tokenizer.model"
generate --json-object --json
json settings.constrained=true settings.seed=4 settings.limit=55
says out '"text": "{'

# ---- refusals ----

runs 3 "$samebit" generate model --json-schema '{"items": {"not": {}}, "type": "array"}'
says err "the schema at '/items': 'not' is not supported"
runs 3 "$samebit" generate model --json-schema nowhere.json
says err "nowhere.json: cannot be opened: No such file or directory"
runs 3 "$samebit" generate model --json-schema '{"type": "objekt"}'
says err "the schema at '/type' is not one of the types"
runs 2 "$samebit" generate model --json-schema true --json-object
says err "--json-schema and --json-object are two constraints: give one"
runs 2 "$samebit" generate model --json-object --ignore-stops
says err "--ignore-stops: what is behind the end of a text is not constrained"
runs 2 "$samebit" generate model -p - --json-schema -
says err "--prompt and --json-schema cannot both be standard input"
runs 3 "$samebit" generate "$work/../../llm/models/llama" --json-object
says err "has neither tokenizer.json nor tokenizer.model"
runs 3 "$samebit" generate model --tokens 1 --json-schema '{"const": "q"}'
says err "the schema wants a byte that no token of the vocabulary begins with"

# ---- penalties and biases ----

greedy() {
    runs 0 "$samebit" generate "$work/../../llm/models/llama" --tokens 1,50,7 --count 12 --ignore-stops "$@"
}
greedy
cp out plain
says err "settings: greedy; at most 12 tokens, none of which ends the text"
first=$(sed 's/ .*//;q' plain)
greedy --logit-bias "$first=-inf" --receipt biased.json
[ "$(sed 's/ .*//;q' out)" != "$first" ] || fail "a token came whose bias is -inf"
says err "settings: greedy, 1 bias;"
runs 0 "$samebit" verify "$work/../../llm/models/llama" biased.json
greedy --logit-bias 33=1000 --logit-bias 5=-1.5
says out "33 33 33 33"
greedy --logit-bias 33=1000 --presence-penalty 2000 --frequency-penalty 1 --repetition-penalty 1.5 --receipt penalised.json
[ "$(tr ' ' '\n' <out | grep -c '^33$')" -eq 1 ] || fail "a token came again in spite of its penalty"
says err "repetition penalty 1.5, presence penalty 2000, frequency penalty 1, 1 bias"
runs 0 "$samebit" verify "$work/../../llm/models/llama" penalised.json
sed 's/"presence_penalty": 2000.0/"presence_penalty": 1000.0/' penalised.json >changed.json
runs 1 "$samebit" verify "$work/../../llm/models/llama" changed.json
says out "settings: "
runs 2 "$samebit" generate model --logit-bias 5
says err "--logit-bias 5: a token's id, = and a number within 2^20, or -inf, are expected"
runs 2 "$samebit" generate model --logit-bias 5=1 --logit-bias 5=2
says err "--logit-bias: token 5 has two"
runs 2 "$samebit" generate model --repetition-penalty 0
says err "--repetition-penalty 0: a number from"
runs 3 "$samebit" generate model --logit-bias 5000=1 --tokens 1
says err "there is a bias for token 5000; the model has 97"
runs 0 "$samebit" verify "$work/../../llm/models/llama" penalised.json --tokenizer model

# ---- the likeliest tokens ----

greedy --json --logprobs --top-logprobs 3
cp out top.json
json tokens.0.top.0.token="$(sed 's/ .*//;q' plain)"
refused "--top-logprobs needs --json" "$samebit" generate model --top-logprobs 3
finish
