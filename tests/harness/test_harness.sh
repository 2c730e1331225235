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

# What was worked out by hand is compared with the definition.
if said=$("$harness" --plant --only 'elementwise.cases.*' --side cpu); then
    fail "definitions may give other values than those of the files"
fi
echo "$said" | grep -q '^DIFFERS elementwise.cases.0, output 0 of Add by its definition$' || fail "nothing of Add's definition in: $said"

# A kernel that takes the whole extent where a part is used is found: in sums, rows and joins, also when it is replayed.
for op in MatMul Gemm Softmax ReduceMean LayerNormalization Gather Concat; do
    case $op in
    Softmax) cases='rows.plain_rows.*' ;;
    ReduceMean) cases='rows.reductions.*' ;;
    LayerNormalization) cases='rows.layers.*' ;;
    Gather) cases='moving.gathers.*' ;;
    Concat) cases='moving.joins.*' ;;
    *) cases='gemm.*' ;;
    esac
    if said=$("$harness" --plant-used --only "$cases" --side cuda); then
        fail "kernels may ignore used extents"
    fi
    for what in 'of [0-9]*$' 'of [0-9]*, replayed'; do
        echo "$said" | grep -q "^DIFFERS .* $op by .* rows used $what" || fail "$op may ignore used extents: $what"
    done
done
echo "$said" | grep -q '^DIFFERS .* Concat by .* appended' || fail "an appending Concat may ignore used extents"

# Names that there are none of are no success, nor are cases that are gone.
"$harness" --cases /nowhere --only 'moving.joins.*' >/dev/null 2>&1 && fail "written cases may be missing"
"$harness" --only nothing.at.all >/dev/null && fail "no case is a success"
"$harness" --list --only 'moving.joins.*' | grep -q '^moving.joins.0 Concat$' || fail "--list does not name a case"
"$harness" --bench --case gemm.batches.3 | grep -q '^bench gemm.batches.3/.* samebit=.* peer=.* unit=us ratio=' || fail "no line of --bench"
