# The language model of examples/austen: the documented digest and receipt whatever computes them, and another with a wrong byte.
. "$(dirname "$0")/common.sh"
austen=$source/examples/austen
digest=$(cat "$austen/digest.txt")
says "$austen/README.md" "$digest"
says "$source/README.md" "$digest"

sets="scalar best"
for name in avx2 avx512; do
    if "$samebit" generate "$austen/model" --tokens 0 --count 0 --isa $name >out 2>err; then
        sets="$sets $name"
    else
        says err "$name"
    fi
done
devices=cpu
"$samebit" generate "$austen/model" --tokens 0 --count 0 --device cuda --require-device >out 2>err && devices="cpu cuda"

for device in $devices; do
    runs 0 "$austen/tell" "$samebit" --device $device
    says out "the documented bits"
    says out "$digest"
    mv out whole
    for options in "--threads 2" "--prefill-chunk 1" "--prefill-chunk 3 --threads 3" "--no-passes" "--context 300" \
        "--reference-evaluation"; do
        # shellcheck disable=SC2086 # options are words
        runs 0 "$austen/tell" "$samebit" --device $device $options
        cmp out whole || fail "another text with $options"
    done
    runs 0 "$samebit" verify "$austen/model" "$austen/receipt.json" --device $device
    says out "the same: 100 of 100 steps checked"
    runs 0 "$austen/tell" "$samebit" --device $device --receipt $device.json
    cmp $device.json "$austen/receipt.json" || fail "another receipt on $device"
done
for name in $sets; do
    runs 0 "$austen/tell" "$samebit" --isa "$name"
    cmp out whole || fail "another text by $name"
    runs 0 "$samebit" verify "$austen/model" "$austen/receipt.json" --isa "$name" --threads 1
done
echo "devices: $devices; instruction sets: $sets"

# ---- a wrong byte ----

# The last weight in the file is in the last norm, whose every number reaches every logit. Its exponent's lowest bit is in its high
# byte's neighbour: bf16 is stored low byte first.
mkdir damaged
cp "$austen/tell" "$austen/digest.txt" damaged
cp -r "$austen/model" damaged/model
weights=damaged/model/model.safetensors
last=$(($(wc -c <$weights) - 2))
byte=$(od -An -tu1 -j $last -N 1 $weights | tr -d ' ')
# shellcheck disable=SC2059 # the byte is written in octal
printf "\\$(printf %o $((byte ^ 16)))" | dd of=$weights bs=1 seek=$last conv=notrunc 2>dd
[ "$(cmp -l $weights "$austen/model/model.safetensors" | wc -l)" -eq 1 ] || fail "not one byte was changed"
runs 1 damaged/tell "$samebit"
says out "NOT the documented bits, which have $digest"
runs 1 "$samebit" verify damaged/model "$austen/receipt.json"
says out "weights: the checkpoint's tensors are not those of the receipt"
says out "state of step 0"
printf x >$weights
runs 2 damaged/tell "$samebit"
says err "model.safetensors"
finish
