#!/bin/sh
# test_harness.sh HARNESS: that the harness finds what it is there to find, says where, and runs the same case again.
set -eu
harness=$1
fail() {
    echo "$1" >&2
    exit 1
}

# A wrong bit fails, and is told with place, values, shapes and the way to run that case again.
if said=$("$harness" --plant --only 'moving.joins.*' --side cuda); then
    fail "a wrong bit passes"
fi
first=$(echo "$said" | grep -m 1 '^DIFFERS ' | cut -d ' ' -f 2 | tr -d ,)
for word in '^DIFFERS moving.joins.[0-9]*, ' '^  element   0 of ' '^  expected .*0x' '^  found .*0x' '^  output 0 .*strides' '^  input 0 ' \
    "^  again .*--case $first --seed 42"; do
    echo "$said" | grep -q "$word" || fail "nothing like \"$word\" in: $said"
done

# That command runs one case, whose values are those that it had among the others.
again=$("$harness" --plant --side cuda --case "$first" --seed 42) && fail "the case passes by itself"
echo "$again" | grep -q '^1 cases, ' || fail "more than one case: $again"
[ "$(echo "$again" | sed -n 3,4p)" = "$(echo "$said" | grep -m 1 -A 3 '^DIFFERS ' | sed -n 3,4p)" ] || fail "other values by itself"
"$harness" --side cuda --case "$first" >/dev/null || fail "the case fails without the wrong bit"
other=$("$harness" --plant --side cuda --case "$first" --seed 43) && fail "the case passes with another seed"
[ "$other" != "$again" ] || fail "another seed gives the same values"

# So it does in every group that tests kernels beside nodes' own, or on raw pointers, and on whichever side.
planted() { # GROUP SIDE
    if said=$("$harness" --plant --only "$1.*3" --side "$2"); then
        fail "a wrong bit passes in $1 on $2"
    fi
    echo "$said" | grep -q "^DIFFERS $1\.[0-9]*, " || fail "$1 fails on $2, but not by a wrong bit: $said"
}
for group in elementwise.unary elementwise.binary fused.bodies fused.normalizations fused.casts \
    fused.values select.views recurrent.random; do
    [ $group = fused.normalizations ] || planted $group cpu
    planted $group cuda
done
for group in elementwise.halves elementwise.divisions elementwise.remainders elementwise.joins elementwise.copies epilogue.steps epilogue.quick; do
    planted $group cuda
done
for group in f32_product.small f32_product.seams f32_product.steps f32_convolution.random f32_convolution.larger chain16.patterns \
    chain16.shapes chain16.largest chain16.views; do
    planted $group cpu
done
# What was worked out by hand is compared with the definition.
if said=$("$harness" --plant --only 'elementwise.cases.*' --side cpu); then
    fail "definitions may give other values than those of the files"
fi
echo "$said" | grep -q '^DIFFERS elementwise.cases.0, output 0 of Add by its definition$' || fail "nothing of Add's definition in: $said"

# A kernel that takes the whole extent where a part is used is found: in sums, rows and joins, also when it is replayed. A tenth of the
# cases says so, where all take seconds.
ignores_used() { # CASES OP…
    if said=$("$harness" --plant-used --only "$1" --side cuda); then
        fail "kernels may ignore used extents"
    fi
    shift
    for op; do
        for what in 'of [0-9]*$' 'of [0-9]*, replayed'; do
            echo "$said" | grep -q "^DIFFERS .* $op by .* rows used $what" || fail "$op may ignore used extents: $what"
        done
    done
}
ignores_used 'gemm.*3' MatMul Gemm
ignores_used 'rows.plain_rows.*3' Softmax
ignores_used 'rows.reductions.*3' ReduceMean
ignores_used 'rows.layers.*' LayerNormalization
ignores_used 'moving.gathers.*' Gather
ignores_used 'moving.joins.*' Concat
echo "$said" | grep -q '^DIFFERS .* Concat by .* appended' || fail "an appending Concat may ignore used extents"

# So is one that takes what is on the host for what the run has.
for op in Range Trilu Slice; do
    case $op in
    Range) cases='moving.making.*' ;;
    Trilu) cases='moving.blocks.*' ;;
    *) cases='moving.slices.*' ;;
    esac
    said=$("$harness" --plant-used --only "$cases" --side cuda) && fail "$op may take the host's elements for the run's"
    echo "$said" | grep -q "^DIFFERS .* $op by .* elements of the run$" || fail "$op may ignore a run's elements"
done

# Names that there are none of are no success, nor are cases that are gone.
"$harness" --cases /nowhere --only 'moving.joins.*' >/dev/null 2>&1 && fail "written cases may be missing"
"$harness" --only nothing.at.all >/dev/null && fail "no case is a success"

# What --list says: operators, inputs, layouts, known values, attributes, outputs. Hardly two cases are told alike.
lists() { # CASE PATTERN
    "$harness" --list --case "$1" | grep -q "^$1 $2" || fail "--list says $("$harness" --list --case "$1"), not $2"
}
lists moving.joins.0 'Concat-13(u8\[0,4,5\].*, u8\[1,4,5\].*, u8\[2,4,5\].*, u8\[3,4,5\].*) axis=-3 values=awkward$'
lists axes.topk.1 'TopK-11(u8\[1\] offset, s64\[1\] known={1}) axis=0 largest=1 outputs=2 '
lists gemm.epilogues.1 'MatMul+Add+Mul+Clip(f32\[2,3,5,17\], .*) values=awkward tiles=each$'
lists elementwise.copies.3 'copy(bool\[5,7,11\] permuted gaps) '
told=$("$harness" --list | cut -d ' ' -f 2-)
all=$(echo "$told" | wc -l) different=$(echo "$told" | sort -u | wc -l)
[ "$all" -gt 10000 ] && [ $((all - different)) -lt $((all / 20)) ] || fail "only $different of $all cases can be told apart"

# --bench: a line for the CPU beside the definition. Over the fake driver the way is the same as over a real one, and its times are not told.
line='^bench gemm.batches.3/[a-z0-9]* samebit=[0-9.]* peer=[0-9.]* unit=us ratio=[0-9.]*$'
"$harness" --bench --case gemm.batches.3 | grep -q "$line" || fail "no line of --bench"
"$harness" --bench --case gemm.batches.3 --side cuda | grep -q '^gemm.batches.3/cuda: the fake driver' || fail "--bench does not run on a device"
