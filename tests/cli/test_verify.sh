#!/bin/sh
# samebit verify, on receipts of the small models that tests/llm has written.
. "$(dirname "$0")/common.sh"
models=$work/../../llm/models
keys=$source/tests/cli/keys

generate() {
    runs 0 "$samebit" generate "$models/llama" --tokens 1,50,7,23 --count 7 --ignore-stops --temperature 0.8 "$@"
}
generate --seed 5 --receipt receipt.json
cp out tokens
generate --seed 5
cmp -s out tokens || fail "--receipt changes the tokens"
for options in "" "--prefill-chunk 1" "--prefill-chunk 3 --threads 1" "--isa scalar" "--no-passes" "--reference-evaluation"; do
    # shellcheck disable=SC2086
    runs 0 "$samebit" verify "$models/llama" receipt.json $options
    says out "the same: 7 of 7 steps checked"
    silent err
done
runs 0 "$samebit" verify "$models/llama" receipt.json --sample 2
says out "the same: 2 of 7 steps checked"
runs 0 "$samebit" verify "$models/llama" receipt.json --sample 3 --json
json same=true steps=7 checked=3
says out '"findings": []'
# Where it is written has no part in it.
cp -r "$models/llama" elsewhere
runs 0 "$samebit" verify elsewhere receipt.json
# The same generation, written twice, is the same file.
generate --seed 5 --receipt again.json --prefill-chunk 2 --threads 1
cmp receipt.json again.json || fail "two receipts of the same generation differ"

runs 0 "$samebit" generate "$models/gpt2" --tokens 5,6 --count 0 --receipt none.json
runs 0 "$samebit" verify "$models/gpt2" none.json
says out "the same: 0 of 0 steps checked"

# ---- what differs ----

first=$(sed 's/ .*//' tokens)
sed "0,/\"token\": $first,/s//\"token\": 96,/" receipt.json >token.json
runs 1 "$samebit" verify "$models/llama" token.json
says out "token of step 0: its hidden state is right, but sampling chooses token $first, and the receipt has 96"
says out "digest: the receipt was changed after it was made"
says out "different: 1 of 7 steps checked"
runs 1 "$samebit" verify "$models/llama" token.json --locate
says out "located: each node computes what its reference evaluation does"
runs 0 "$samebit" verify "$models/llama" receipt.json --locate
grep -q located out && fail "something is located where nothing differs"
runs 1 "$samebit" verify "$models/llama" token.json --locate --json
json located=null
refused "--locate looks at all steps" "$samebit" verify "$models/llama" token.json --locate --sample 2
refused "--locate looks at all steps" "$samebit" verify "$models/llama" token.json --locate --reference-evaluation
sed 's/"seed": "5"/"seed": "6"/' receipt.json >seed.json
runs 1 "$samebit" verify "$models/llama" seed.json --json
json same=false findings.0.what=settings findings.1.what=token findings.2.what=digest findings.0.step=null
sed 's/"limit": 7/"limit": 8/' receipt.json >limit.json
runs 1 "$samebit" verify "$models/llama" limit.json
says out "end: after 7 tokens nothing ends the generation, and the receipt says 'limit'"
runs 1 "$samebit" verify "$models/llama.gguf" receipt.json
says out "weights: the checkpoint's tensors are not those of the receipt"
says out "configuration: "
says out "different: 7 of 7 steps checked"
printf '\001' | dd of=elsewhere/model.safetensors bs=1 seek=$(($(wc -c <elsewhere/model.safetensors) - 1)) conv=notrunc 2>dd
runs 1 "$samebit" verify elsewhere receipt.json
says out "weights: "
cp -r "$models/llama" tokenizer
echo '{}' >tokenizer/tokenizer.json
runs 1 "$samebit" verify tokenizer receipt.json
says out "tokenizer: the tokenizer's files are there, which the receipt knows nothing of"

# ---- signatures ----

generate --seed 5 --receipt signed.json --sign "$keys/private.pem"
runs 0 "$samebit" verify "$models/llama" signed.json
says out "its signature was not looked at, which takes --key"
runs 0 "$samebit" verify "$models/llama" signed.json --key "$keys/public.pem"
says out "signed by the key"
runs 1 "$samebit" verify "$models/llama" receipt.json --key "$keys/public.pem"
says out "signature: the receipt is not signed by the key"
runs 1 "$samebit" verify "$models/llama" signed.json --key "$keys/other-public.pem" --json
json same=false signed=false findings.0.what=signature
refused "holds no public key in PEM" "$samebit" verify "$models/llama" signed.json --key "$keys/private.pem"
runs 3 "$samebit" generate "$models/llama" --tokens 1 --receipt x.json --sign "$keys/public.pem"
silent out
says err "holds no private key in PEM"
refused "--sign needs --receipt FILE" "$samebit" generate "$models/llama" --tokens 1 --sign "$keys/private.pem"

# ---- what cannot be used ----

refused "cannot open nowhere.json" "$samebit" verify "$models/llama" nowhere.json
refused "elsewhere/config.json has no \"format\"" "$samebit" verify "$models/llama" elsewhere/config.json
head -c 700 receipt.json >cut.json
refused "cut.json, byte" "$samebit" verify "$models/llama" cut.json
refused "verify takes MODEL FILE" "$samebit" verify "$models/llama"
refused "--sample takes a number from 1" "$samebit" verify "$models/llama" receipt.json --sample 0
runs 3 "$samebit" verify "$models" receipt.json
says err "has no config.json"
runs 3 "$samebit" generate "$models/llama" --tokens 1,2 --count 2 --receipt no/such.json
says err "no/such.json"
mkdir folder
runs 3 "$samebit" generate "$models/llama" --tokens 1,97 --receipt folder/receipt.json
[ -z "$(ls folder)" ] || fail "a generation that failed leaves a file"
finish
