# The digits program: right answers, the documented digest, and what it says when the digest is another.
. "$(dirname "$0")/common.sh"

runs 0 "$example" "$digits"
says out "18 of 20 right"
says out "sha256 $(cat "$digits/digest.txt"): the documented bits"
says out "3. read as 2: right"
! LC_ALL=C grep -q "$(printf '\033')" out || fail "colours where there is no terminal"
says "$digits/README.md" "$(cat "$digits/digest.txt")"
cp -r "$digits" copy
printf '%064d\n' 0 >copy/digest.txt
runs 1 "$example" copy
says out "NOT the documented bits"
rm copy/samples.npy
runs 2 "$example" copy
says err "samples.npy"
cp copy/labels.npy copy/samples.npy
runs 2 "$example" copy
says err "another type"
finish
