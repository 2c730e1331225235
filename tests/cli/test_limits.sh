# Models that ask for too much: limits of iterations and memory, and Ctrl-C.
. "$(dirname "$0")/common.sh"
runs 0 "$tool" model endless 0 endless.onnx
runs 0 "$tool" array 0 1 3 x.npy

runs 3 "$samebit" run endless.onnx --input x=x.npy --iteration-limit 1000
says err "limit reached: node forever (Loop): iteration 1000"
silent out
refused "--iteration-limit takes a number from 1" "$samebit" run endless.onnx --iteration-limit 0
refused "--iteration-limit takes a number from 1" "$samebit" run endless.onnx --iteration-limit many

# interrupted COMMAND…: SIGINT in the midst of it gives status 130, a message and no output. A script's background jobs ignore
# SIGINT until they ask for it, so one that comes too early is lost, and is sent again; timeout hands it on.
interrupted() {
    timeout --foreground -k 1 60 "$@" >out 2>err &
    process=$!
    for attempt in 1 2 3 4 5; do
        sleep 0.5
        kill -INT $process
        for patience in 1 2 3 4 5 6 7 8 9 10; do
            sleep 0.3
            kill -0 $process 2>/dev/null || break 2
        done
    done
    wait $process
    found=$?
    [ $found -eq 130 ] || {
        fail "status $found instead of 130: $*"
        cat err
    }
    silent out
    says err "interrupted"
}
interrupted "$samebit" run endless.onnx --input x=x.npy --digest
interrupted "$samebit" bench endless.onnx

runs 0 "$tool" model large 40 large.onnx
for options in "" "--memory-limit 100M" "--memory-limit 1000000" "--no-passes --reference-evaluation"; do
    # shellcheck disable=SC2086 # options are words
    runs 3 "$samebit" run large.onnx --input x=x.npy $options
    says err "out of memory: node"
    says err "f32[3298534883328,4]"
    silent out
done
runs 0 "$tool" model large 10 small.onnx
runs 0 "$samebit" run small.onnx --input x=x.npy --memory-limit 1M
runs 3 "$samebit" run small.onnx --input x=x.npy --memory-limit 100K
says err "limit of 102400 bytes"
for bytes in 0 -1 2.5G M 1MB 16777216T 99999999999999999999999999999999999999; do
    refused "--memory-limit takes a number of bytes, such as 500M or 2G, not $bytes" \
        "$samebit" run small.onnx --memory-limit $bytes
done
finish
