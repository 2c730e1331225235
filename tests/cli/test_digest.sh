# samebit digest: the same for equal arrays, another for others.
. "$(dirname "$0")/common.sh"

runs 0 "$samebit" digest "$digits/samples.npy" "$digits/labels.npy"
says out "$digits/samples.npy"
[ "$(wc -l <out)" -eq 2 ] || fail "two files give two lines"
[ "$(cut -c1-64 out | sort -u | wc -l)" -eq 2 ] || fail "different arrays have one digest"
runs 0 "$samebit" digest "$digits/reference.npz"
says out "reference.npz:probabilities"
"$tool" array 1 1 2 a.npy
"$tool" array 1 1 2 b.npy
"$tool" array 1 2 2 c.npy
runs 0 "$samebit" digest a.npy b.npy c.npy
[ "$(cut -c1-64 out | uniq -c | awk '{ printf "%s ", $1 }')" = "2 1 " ] || fail "digests: $(cat out)"
refused "digest takes FILE" "$samebit" digest
runs 3 "$samebit" digest a.npy missing.npy
says err "missing.npy"
printf 'no array' >text.npy
runs 3 "$samebit" digest text.npy
says err "text.npy"
finish
