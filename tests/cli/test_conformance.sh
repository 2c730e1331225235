# samebit conformance: counts, manifest, digests, JSON. (That the cases pass is tests/conformance's business.)
. "$(dirname "$0")/common.sh"

runs 0 "$samebit" conformance --only test_relu --only test_abs "$standard"
silent err
says out "2 passed, 0 failed, 0 skipped"
runs 0 "$samebit" conformance "$standard/test_relu" --verbose --digests digests.txt --strided
says out "passed test_relu"
says digests.txt " test_relu"
printf '# left out\ntest_abs\tfor the sake of the test\n' >manifest.txt
runs 0 "$samebit" conformance --only test_relu --only test_abs "$standard" --manifest manifest.txt --verbose
says out "skipped test_abs: for the sake of the test"
says out "1 passed, 0 failed, 1 skipped"
runs 0 "$samebit" conformance --only test_relu --only test_abs "$standard" --manifest manifest.txt --json
json passed=1 failed=0 skipped=1 cases#=2 cases.0.name=test_abs 'cases.0.reason=for the sake of the test' \
    cases.1.result=passed

# A case whose recorded answer is that of another operator.
mkdir -p wrong
cp -r "$standard/test_relu" wrong/
cp "$standard/test_abs/model.onnx" wrong/test_relu/model.onnx
runs 1 "$samebit" conformance wrong
says out "failed test_relu: different: output y: "
says out "0 passed, 1 failed, 0 skipped"
runs 1 "$samebit" conformance wrong --json
json failed=1 cases.0.result=failed

# A case's own tolerance: abs answers with up to 9 where relu's recorded answer is 0.
printf '0 9\n' >wrong/test_relu/tolerance.txt
runs 0 "$samebit" conformance wrong
runs 1 "$samebit" conformance wrong --tolerance 1e-7,1e-3
printf '9 0\n' >wrong/test_relu/tolerance.txt
runs 1 "$samebit" conformance wrong
runs 0 "$samebit" conformance wrong --tolerance 9,0
for text in 1 "1 2 3" "-1 0" "0 nan" "none"; do
    echo "$text" >wrong/test_relu/tolerance.txt
    runs 1 "$samebit" conformance wrong
    says out "tolerance.txt: a tolerance is RTOL ATOL, two numbers that are not negative"
done

runs 3 "$samebit" conformance no-such-folder
says err "no-such-folder"
runs 3 "$samebit" conformance --only no_such_case "$standard"
says err "no case was run"
printf 'test_abs\n' >manifest.txt
runs 2 "$samebit" conformance wrong --manifest manifest.txt
says err "manifest.txt:1: a line is NAME, a tab and the reason"
runs 2 "$samebit" conformance wrong --digests no/such/folder/digests.txt
says err "cannot write no/such/folder/digests.txt"
refused "--tolerance takes ATOL,RTOL" "$samebit" conformance wrong --tolerance 1
finish
