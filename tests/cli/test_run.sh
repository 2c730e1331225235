# samebit run: files in, files out, digests, and inputs that do not fit.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx samples=$digits/samples.npy
documented=$(cat "$digits/digest.txt")

for options in "" "--isa scalar" "--threads 1" "--threads 3 --no-passes" "--reference-evaluation"; do
    # shellcheck disable=SC2086 # options are words
    runs 0 "$samebit" run "$model" --input "image=$samples" --digest $options
    says out "probabilities: f32[20,10]"
    says out "sha256 $documented"
done
runs 0 "$samebit" run "$model" --input "image=$samples" --json
json "digest=$documented" outputs.0.name=probabilities outputs.0.dims=[20,10]
runs 0 "$samebit" run "$model" --input "image=$samples" --output all.npz --set batch=20
runs 0 "$samebit" run "$model" --input "image=$samples" --output one.npy
runs 0 "$samebit" digest all.npz one.npy
says out "all.npz:probabilities"
[ "$(cut -c1-64 out | uniq | wc -l)" -eq 1 ] || fail "npz and npy hold different values"

refused "input image is missing: give --input image=FILE" "$samebit" run "$model"
refused "the model has no input picture; it has image" "$samebit" run "$model" --input "picture=$samples"
refused "input image is given twice" "$samebit" run "$model" --input "image=$samples" --input "image=$samples"
refused "--input takes NAME=FILE" "$samebit" run "$model" --input "$samples"
refused "--set takes SYMBOL=N, not batch" "$samebit" run "$model" --input "image=$samples" --set batch
refused "no input of the model has an extent of that name" "$samebit" run "$model" --set time=3
refused "extent batch is 20, but --set asks for 3" "$samebit" run "$model" --input "image=$samples" --set batch=3
runs 3 "$samebit" run missing.onnx
says err "missing.onnx"
runs 3 "$samebit" run "$samples"
runs 3 "$samebit" run "$model" --input "image=$digits/labels.npy"
says err "image"
runs 3 "$samebit" run "$model" --input "image=$samples" --output no/such/folder/all.npz
says err "no/such/folder"
finish
