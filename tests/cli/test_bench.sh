# samebit bench: statistics that fit each other.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx

runs 0 "$samebit" bench "$model" --runs 5 --threads 1 --set batch=2
silent err
says out "1 thread"
says out "5 runs: min "
says out "runs per second"
runs 0 "$samebit" bench "$model" --runs 7 --isa scalar --json
json runs=7 isa=scalar threads=0 flops=929074.0
sorted=$(grep -o '"\(min\|median\|p90\|max\)_ms": [0-9.e-]*' out | cut -d' ' -f2)
[ "$(echo "$sorted" | LC_ALL=C sort -g)" = "$sorted" ] || fail "min, median, p90 and max are out of order: $sorted"
runs 0 "$samebit" bench "$model" --seconds 0
says out "1 run: "
runs 0 "$samebit" bench "$model" --runs 5 --queue 3 --threads 1
says out "3 runs in flight"
says out "5 runs: min "
runs 0 "$samebit" bench "$model" --runs 2 --queue 4 --warmup 0 --json
json runs=2 queue=4
runs 0 "$samebit" bench "$model" --runs 1 --explain-placement
says out "no device: all nodes that ran, 10, on the CPU"
refused "--queue takes a number from 1 to 16" "$samebit" bench "$model" --queue 17
refused "--runs and --seconds exclude each other" "$samebit" bench "$model" --runs 3 --seconds 1
refused "--seconds takes a number of at least 0, not -1" "$samebit" bench "$model" --seconds -1
refused "--seconds takes a number of at least 0, not inf" "$samebit" bench "$model" --seconds inf
refused "--runs takes a number from 1" "$samebit" bench "$model" --runs 1e3
refused "input x cannot be made up: give it with --input" "$samebit" bench "$standard/test_identity_sequence/model.onnx"
finish
