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

# A model's only input needs no name, and - is standard input: a model or an array, from a pipe or a file.
runs 0 "$samebit" run "$model" --input "$samples" --digest
says out "sha256 $documented"
runs 0 sh -c 'cat "$2" | "$1" run "$3" --input - --digest' - "$samebit" "$samples" "$model"
says out "sha256 $documented"
runs 0 sh -c '"$1" run "$3" --input image=- --digest <"$2"' - "$samebit" "$samples" "$model"
says out "sha256 $documented"
runs 0 sh -c 'cat "$3" | "$1" run - --input "$2" --digest' - "$samebit" "$samples" "$model"
says out "sha256 $documented"
runs 0 sh -c '"$1" run - --input "$2" --digest <"$3"' - "$samebit" "$samples" "$model"
says out "sha256 $documented"
runs 0 sh -c 'cat all.npz | "$1" digest -' - "$samebit"
says out "-:probabilities"
runs 0 sh -c 'cat "$2" | "$1" dump -' - "$samebit" "$model"
says out "probabilities"
refused "the model has 2 inputs, and --input takes NAME=FILE or FILE.npz, not $samples" \
    "$samebit" run "$standard/test_add/model.onnx" --input "$samples"
runs 2 sh -c 'cat "$2" | "$1" run - --input -' - "$samebit" "$model"
says err "- is standard input, which is the model already: give a file"
runs 3 sh -c 'printf nonsense | "$1" run - --input "$2"' - "$samebit" "$samples"
says err "standard input: "
runs 3 sh -c '"$1" run - --input "$2" </dev/null' - "$samebit" "$samples"
runs 3 sh -c 'printf nonsense | "$1" run "$2" --input -' - "$samebit" "$model"
says err "/dev/stdin"
runs 3 sh -c '"$1" run - <.' - "$samebit"
says err "standard input: cannot be read"
refused "--set takes SYMBOL=N, not batch" "$samebit" run "$model" --input "image=$samples" --set batch
refused "input image is given twice" "$samebit" run "$model" --input "$samples" --input "$samples"
refused "no input of the model has an extent of that name" "$samebit" run "$model" --set time=3
refused "extent batch is 20, but --set asks for 3" "$samebit" run "$model" --input "image=$samples" --set batch=3
runs 3 "$samebit" run missing.onnx
says err "missing.onnx"
runs 3 "$samebit" run "$samples"
runs 3 "$samebit" run "$model" --input "image=$digits/labels.npy"
says err "image"
runs 3 "$samebit" run "$model" --input "image=$samples" --output no/such/folder/all.npz
says err "no/such/folder"
# A file with warnings: one line tells where they are.
"$tool" array -1 1 3 tolerated.npy
tolerated=$source/tests/fuzz/seeds/onnx/tolerated_declared.onnx
runs 0 "$samebit" run "$tolerated" --input x=tolerated.npy
says err "samebit: 2 warnings about the file: samebit dump --warnings $tolerated"
[ "$(wc -l <err)" -eq 1 ] || fail "more than a line"
says out "y: f32[3,4]"
finish
