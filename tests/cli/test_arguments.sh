# The command line itself: help, version, generators, and what is refused.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx

runs 0 "$samebit" --version
says out "numerics 2"
runs 0 "$samebit" --help
for command in run dump compare bench profile devices digest generate verify perplexity info conformance; do
    says out "  $command "
    cp out help
    runs 0 "$samebit" $command --help
    says out "usage: samebit $command "
    says out "--help"
    silent err
    [ "$(awk '{ if (length($0) > 104) print }' out | wc -l)" -eq 0 ] || fail "$command --help has long lines"
    cp help out
done
runs 2 "$samebit"
says err "usage: samebit COMMAND"
refused "there is no command walk" "$samebit" walk
refused "run takes MODEL" "$samebit" run
refused "run takes MODEL" "$samebit" run a b
refused "run has no option --walk" "$samebit" run "$model" --walk
refused "--digest takes no argument" "$samebit" run "$model" --digest=1
refused "--threads needs an argument: --threads N" "$samebit" run "$model" --threads
refused "--threads is given twice" "$samebit" run "$model" --threads 1 --threads 2
for number in -1 1025 '' ' 1' 1x 99999999999999999999; do
    refused "--threads takes a number from 0 to 1024" "$samebit" run "$model" --threads "$number"
done
refused "--isa takes scalar, avx2, avx512 or best" "$samebit" run "$model" --isa mmx
runs 3 "$samebit" run -- --no-such-file
says err "--no-such-file"

# The generators name every option of every command.
runs 0 "$samebit" --manual
says out "# EXIT STATUS"
says out "reference-evaluation"
for shell in bash zsh fish; do
    runs 0 "$samebit" --completion $shell
    says out "cumulative"
done
refused "--completion takes bash, zsh or fish" "$samebit" --completion csh
if command -v scdoc >/dev/null; then
    "$samebit" --manual | scdoc >samebit.1 || fail "scdoc refuses the man page"
    says samebit.1 "tolerance"
fi
if command -v bash >/dev/null; then
    "$samebit" --completion bash >samebit.bash
    bash -c '. ./samebit.bash; COMP_WORDS=(samebit com) COMP_CWORD=1; _samebit; echo ${COMPREPLY[@]}
             COMP_WORDS=(samebit compare --cum) COMP_CWORD=2; _samebit; echo ${COMPREPLY[@]}' >out
    says out "compare"
    says out "--cumulative"
fi
finish
