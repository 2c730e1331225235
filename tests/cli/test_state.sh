# samebit run with a state: steps, and states that go from one process to the next.
. "$(dirname "$0")/common.sh"
runs 0 "$tool" model sum 0 sum.onnx
runs 0 "$tool" array 0 0.25 5 all.npy
runs 0 "$tool" array 0 0.25 3 first.npy
runs 0 "$tool" array 3 0.25 2 second.npy
pair="--state h=hN --set batch=1"

# Five steps at once, and three and two in processes of their own, on every instruction set: the same state, to the byte.
for options in "" "--isa scalar" "--threads 3"; do
    # shellcheck disable=SC2086 # options are words
    runs 0 "$samebit" run sum.onnx $pair --steps all.npy --save-state whole.state --output y.npy $options
    says out "y: f32[5,1,4]"
    says out "hN: in the state"
    # shellcheck disable=SC2086
    runs 0 "$samebit" run sum.onnx $pair --steps first.npy --save-state half.state $options
    cp half.state before.state
    # shellcheck disable=SC2086
    runs 0 "$samebit" run sum.onnx $pair --steps second.npy --load-state half.state --save-state end.state $options
    cmp -s half.state before.state || fail "loading has changed the file"
    cmp -s whole.state end.state || fail "steps in two processes leave another state"
done
# By hand: the sum of the rows, as an input and with a state that was loaded.
runs 0 "$tool" array 0 0 1 zeros.npy
runs 0 "$tool" array 0 0.25 1 row.npy
runs 0 "$samebit" run sum.onnx --input x=row.npy --input h=zeros.npy --output hand.npz
runs 0 "$samebit" run sum.onnx --state h=hN --set batch=1 --input x=row.npy --output state.npy
runs 0 "$samebit" digest hand.npz state.npy
[ "$(grep -c "$(tail -n 1 out | cut -c1-64)" out)" -eq 2 ] || fail "y differs from y by hand"
runs 0 "$samebit" run sum.onnx --state h=hN --set batch=1 --input x=row.npy --json
json outputs.1.name=y outputs.0.dtype=nothing

refused "is one array, and more or fewer inputs than one are left" "$samebit" run sum.onnx --steps all.npy
refused "--state takes INPUT=OUTPUT, not h" "$samebit" run sum.onnx --state h --steps all.npy
refused "--load-state needs a state" "$samebit" run sum.onnx --load-state half.state --input x=row.npy
refused "--save-state needs a state" "$samebit" run sum.onnx --save-state half.state --input x=row.npy
runs 3 "$samebit" run sum.onnx --state h=hN --steps all.npy
says err "give extent 0 a value"
runs 3 "$samebit" run sum.onnx --state h=z --set batch=1 --steps all.npy
says err "no output 'z'"
runs 3 "$samebit" run sum.onnx --state h=hN --set batch=1 --load-state missing.state --steps all.npy
says err "missing.state"
head -c 100 whole.state >short.state
runs 3 "$samebit" run sum.onnx --state h=hN --set batch=1 --load-state short.state --steps all.npy
says err "short.state: at byte "
runs 3 "$samebit" run sum.onnx --state h=hN --set batch=2 --load-state whole.state --steps all.npy
says err "variable h has another dtype or other extents"
runs 3 "$samebit" run sum.onnx --state h=hN --set batch=1 --steps all.npy --save-state no/such/folder/state

# A decoder whose cache grows: with any capacity the steps give the same bits, and without one it is refused.
decoder=$source/tests/state/models/decoder_torchscript.onnx
pairs=
for name in key_0 value_0 key_1 value_1; do pairs="$pairs --state past_$name=present_$name"; done
{ # s64[6,1,1]: 3 1 4 1 5 9
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<i8', 'fortran_order': False, 'shape': (6, 1, 1)}"
    for token in 3 1 4 1 5 11; do printf "\\$token\\0\\0\\0\\0\\0\\0\\0"; done
} >ids.npy
for options in "past=64" "past=7" "past=2..16" "past=64 --reference-evaluation --no-passes" "past=64 --threads 1 --isa scalar"; do
    # shellcheck disable=SC2086
    runs 0 "$samebit" run "$decoder" $pairs --steps ids.npy --digest --capacity $options
    says out "logits: f32[6,1,1,31]"
    [ -f logits ] || cp out logits
    cmp -s out logits || fail "other logits with --capacity $options"
done
# shellcheck disable=SC2086
runs 3 "$samebit" run "$decoder" $pairs --steps ids.npy --capacity past=3
says err "extent past is 3, and its capacity, 3, leaves this run no room"
# shellcheck disable=SC2086
runs 3 "$samebit" run "$decoder" $pairs --steps ids.npy --set past=0
says err "extent 2 grows in every run. Give it a capacity"
refused "--capacity takes SYMBOL=N or SYMBOL=M..N" "$samebit" run "$decoder" --capacity past=0..64
runs 0 "$samebit" bench "$decoder" --capacity past=64 --set past=10 --set tokens=1 --runs 2
says out "2 runs: "
finish
