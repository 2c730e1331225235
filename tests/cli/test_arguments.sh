# The command line itself: help, version, generators, and what is refused.
. "$(dirname "$0")/common.sh"
model=$digits/digits.onnx

runs 0 "$invar" --version
says out "numerics 1"
runs 0 "$invar" --help
for command in run dump compare bench profile devices digest conformance; do
    says out "  $command "
    cp out help
    runs 0 "$invar" $command --help
    says out "usage: invar $command "
    says out "--help"
    silent err
    [ "$(awk '{ if (length($0) > 104) print }' out | wc -l)" -eq 0 ] || fail "$command --help has long lines"
    cp help out
done
runs 2 "$invar"
says err "usage: invar COMMAND"
refused "there is no command walk" "$invar" walk
refused "run takes MODEL" "$invar" run
refused "run takes MODEL" "$invar" run a b
refused "run has no option --walk" "$invar" run "$model" --walk
refused "--digest takes no argument" "$invar" run "$model" --digest=1
refused "--threads needs an argument: --threads N" "$invar" run "$model" --threads
refused "--threads is given twice" "$invar" run "$model" --threads 1 --threads 2
for number in -1 1025 '' ' 1' 1x 99999999999999999999; do
    refused "--threads takes a number from 0 to 1024" "$invar" run "$model" --threads "$number"
done
refused "--isa takes scalar, avx2, avx512 or best" "$invar" run "$model" --isa mmx
runs 3 "$invar" run -- --no-such-file
says err "--no-such-file"

# The generators name every option of every command.
runs 0 "$invar" --manual
says out "# EXIT STATUS"
says out "reference-evaluation"
for shell in bash zsh fish; do
    runs 0 "$invar" --completion $shell
    says out "cumulative"
done
refused "--completion takes bash, zsh or fish" "$invar" --completion csh
if command -v scdoc >/dev/null; then
    "$invar" --manual | scdoc >invar.1 || fail "scdoc refuses the man page"
    says invar.1 "tolerance"
fi
if command -v bash >/dev/null; then
    "$invar" --completion bash >invar.bash
    bash -c '. ./invar.bash; COMP_WORDS=(invar com) COMP_CWORD=1; _invar; echo ${COMPREPLY[@]}
             COMP_WORDS=(invar compare --cum) COMP_CWORD=2; _invar; echo ${COMPREPLY[@]}' >out
    says out "compare"
    says out "--cumulative"
fi
finish
