#!/bin/sh
# samebit generate, samebit info and samebit tokenize, on the small models that tests/llm has written.
. "$(dirname "$0")/common.sh"
models=$work/../../llm/models

runs 0 "$samebit" info "$models/gemma3"
says out "family       Gemma 3 (safetensors)"
says out "5 layers see the last 9 keys"
runs 0 "$samebit" info "$models/llama.gguf" --json
says out '"format": "GGUF"'

generate() {
    runs 0 "$samebit" generate "$@" --tokens 1,50,7,23,88,4,61 --count 9 --ignore-stops --digest
}
generate "$models/llama-text"
cp out whole
[ "$(sed -n 1p out | wc -w)" -eq 9 ] || fail "not 9 tokens"
for options in "--prefill-chunk 1" "--prefill-chunk 3" "--threads 1" "--isa scalar" "--no-passes" "--reference-evaluation"; do
    # shellcheck disable=SC2086
    generate "$models/llama-text" $options
    cmp -s out whole || fail "other tokens or another digest with $options"
done
generate "$models/llama.gguf"
cmp -s out whole || fail "other tokens or another digest from the GGUF file"
generate "$models/llama-text" --temperature 1 --seed 5
cp out sampled
generate "$models/llama-text" --temperature 1 --seed 5 --top-k 1
cut -d' ' -f1-9 out | head -1 >first
head -1 whole | cut -d' ' -f1-9 | cmp -s - first || fail "the only one of one token is not the likeliest"
generate "$models/llama-text" --temperature 1 --seed 6
cmp -s out sampled && fail "two seeds give the same tokens"

runs 0 "$samebit" generate "$models/gpt2" --tokens 1,2,3 --count 1 --score-prompt --logprobs --json
says out '"given": true'
says out '"logp": -'
says out '"end": "limit"'
runs 0 "$samebit" generate "$models/gpt2" --tokens 5 --count 2 --ignore-stops
says err "settings: greedy"
grep -q "of the prompt in" err && fail "statistics that nobody has asked for"
runs 0 "$samebit" generate "$models/gpt2" --tokens 5,6,7 --count 3 --ignore-stops --stats
says err "3 tokens of the prompt in "
says err "; 3 new, the first after "
says err "each ("
says err "; ended by limit"
runs 0 "$samebit" generate "$models/gpt2" --tokens 5 --count 0 --stats --json
says err "; 0 new; ended by limit"

# Text in and out: tokens 3 to 96 of this model are the characters from the space on, and 1 begins texts.
runs 0 "$samebit" generate "$models/llama-text" --tokens 1,43,76,3 --count 9 --ignore-stops --digest
sed -n 2p out >digest
for prompt in "-p" "--prompt"; do
    runs 0 "$samebit" generate "$models/llama-text" $prompt "Hi " --count 9 --ignore-stops --digest
    says out "$(cat digest)"
done
[ "$(head -1 out | wc -m)" -le 10 ] || fail "more text than tokens"
head -1 out >text
printf 'Hi ' | "$samebit" generate "$models/llama-text" -p - --count 9 --ignore-stops --digest >out 2>err
says out "$(cat digest)"
runs 0 "$samebit" generate "$models/llama.gguf" --tokenizer "$models/llama-text" -p "Hi " --count 9 --ignore-stops --digest
says out "$(cat digest)"
head -1 out | cmp -s - text || fail "another text from the GGUF file"
runs 0 "$samebit" generate "$models/llama-text" -p "Hi " --bare --count 1 --json --ignore-stops
json prompt_tokens=3
runs 0 "$samebit" generate "$models/llama-text" -p "<s>" --plain --bare --count 1 --json --ignore-stops
json prompt_tokens=3
says out '"piece": '
says out '"text": '
runs 0 "$samebit" generate "$models/llama-text" -p "Hi " --count 2 --logprobs --ignore-stops
[ "$(awk -F'\t' '{ print NF }' out | sort -u)" = 4 ] || fail "not four columns"
runs 2 "$samebit" generate "$models/llama-text" -p a --tokens 1
says err "--prompt and --tokens are two prompts: give one"
runs 2 "$samebit" generate "$models/llama-text" -p
says err "--prompt needs an argument: --prompt TEXT"
runs 2 "$samebit" generate "$models/llama-text" -p a --prompt b
says err "--prompt is given twice"
runs 2 "$samebit" generate "$models/llama-text" --tokens 1 --bare
says err "--bare and --plain are for --prompt"
runs 2 "$samebit" generate "$models/llama-text" -p "" --bare
says err "--prompt: the text has no tokens"
runs 3 "$samebit" generate "$models/llama.gguf" -p a
says err "llama.gguf: the file has no tokenizer (tokenizer.ggml.model): take the model's tokenizer.json"
runs 3 "$samebit" generate "$models/gpt2" -p a
says err "has neither tokenizer.json nor tokenizer.model"

# A conversation is what the template writes, tokens that texts begin with included.
runs 0 "$samebit" generate "$models/llama-text" --chat -p "Hi <s>" --system "Be brief" --date 2026-02-28 --count 3 --json --ignore-stops
cp out chat.json
runs 0 "$samebit" generate "$models/llama-text" -p "<s>[2026-02-28][system]Be brief</s>[user]Hi <s></s>[assistant]" --bare --count 3 --json --ignore-stops
for name in digest prompt_tokens text; do
    [ "$(grep "\"$name\":" chat.json)" = "$(grep "\"$name\":" out)" ] || fail "--chat has another $name"
done
printf 'Hi <s>' | "$samebit" generate "$models/llama-text" --chat -p - --date 2026-02-28 --count 0 --json >out || fail "--chat of standard input"
runs 2 "$samebit" generate "$models/llama-text" --chat -p a --bare
says err "without --bare and --plain"
runs 2 "$samebit" generate "$models/llama-text" -p a --system b
says err "--system, --conversation and --date are for --chat"
runs 2 "$samebit" generate "$models/llama-text" --chat -p a --date 2026-13-01
says err "--date 2026-13-01: a day such as 2026-02-28"
runs 3 "$samebit" generate "$models/gpt2" --chat -p a --tokenizer "$models/llama-text"
says err "chat template"

runs 3 "$samebit" generate "$models/llama-text" --tokens 97
says err "token 0 of 1 is 97; the model has 97"
runs 3 "$samebit" generate "$models"
says err "has no config.json"
runs 3 "$samebit" generate "$models/llama/config.json"
says err "no GGUF file"
runs 3 "$samebit" generate "$models/llama-text" --tokens 1,2,3 --context 2
says err "more than the context of 2"
runs 2 "$samebit" generate "$models/llama-text" --tokens 1,x
says err "--tokens: 'x'"
runs 2 "$samebit" generate "$models/llama-text" --dtype f64
says err "--dtype f64"
runs 2 "$samebit" generate "$models/llama-text" --top-p 0
says err "--top-p 0"
runs 2 "$samebit" generate "$models/llama-text" --tokens 99999999999999999999
says err "--tokens: '99999999999999999999' does not begin with a token's id"

tokenize() {
    runs 0 "$samebit" tokenize "$models/llama-text" "$@"
}
tokenize "Hi <s>"
[ "$(cat out)" = 1,43,76,3,1 ] || fail "tokens: $(cat out)"
tokenize "Hi <s>" --bare --plain
[ "$(cat out)" = 43,76,3,31,86,33 ] || fail "plain tokens: $(cat out)"
printf 'a\n' | "$samebit" tokenize "$models/llama-text/tokenizer.json" >out || fail "standard input"
[ "$(cat out)" = 1,68,0 ] || fail "tokens of standard input: $(cat out)"
tokenize "1,43 76" --decode
[ "$(cat out)" = "<s>Hi" ] || fail "text: $(cat out)"
tokenize "1,43 76" --decode --skip-special
[ "$(cat out)" = Hi ] || fail "text: $(cat out)"
tokenize "1,43,76" --decode --json
json "text=<s>Hi"
tokenize "H" --json
json count=2
says out '"piece": "<s>"'
says out '"special": true'
printf 'a\377' >broken
"$samebit" tokenize "$models/llama-text" - <broken >out 2>err && fail "a text that is not UTF-8"
says err "the text is not UTF-8 at byte 1"
runs 3 "$samebit" tokenize "$models/llama-text" --decode 97
says err "no token has the id 97: ids go up to 96"
runs 2 "$samebit" tokenize "$models/llama-text" --decode 1,-2
says err "--decode: '-2' does not begin with a token's id"
runs 2 "$samebit" tokenize "$models/llama-text" --decode ""
says err "--decode: there is no token's id"
runs 2 "$samebit" tokenize "$models/llama-text" a --skip-special
says err "--skip-special is for --decode"
runs 2 "$samebit" tokenize "$models/llama-text" 1 --decode --bare
says err "--bare and --plain are for texts"
runs 3 "$samebit" tokenize "$models/gemma3.gguf" a
says err "the file has no tokenizer"

# What generation_config.json says is in force where no option, and no line of a file, says otherwise.
cp -r "$models/llama-text" suggests
suggest() {
    printf '%s' "$1" >suggests/generation_config.json
    shift
    runs 0 "$samebit" generate "${folder:-suggests}" -p "Hi there, hi" --count 9 --ignore-stops --digest "$@"
}
same() {
    sed -n 2p out >one
    rm -f suggests/generation_config.json
    runs 0 "$samebit" generate suggests -p "Hi there, hi" --count 9 --ignore-stops --digest "$@"
    sed -n 2p out | cmp -s - one || fail "suggestions are not as $*"
}
all='{"do_sample": true, "temperature": 0.75, "top_k": 20, "top_p": 0.875, "min_p": 0.0625, "repetition_penalty": 1.25, "eos_token_id": 2}'
suggest "$all"
says err "settings: temperature 0.75, seed 0, request 0, top-k 20, top-p 0.875, min-p 0.0625, repetition penalty 1.25 (by generation_config.json, where no option says otherwise); at most 9"
same --temperature 0.75 --top-k 20 --top-p 0.875 --min-p 0.0625 --repetition-penalty 1.25
suggest "$all" --top-k 5 --temperature 1.5 --seed 3
same --temperature 1.5 --top-k 5 --top-p 0.875 --min-p 0.0625 --repetition-penalty 1.25 --seed 3
suggest "$all" --temperature 0 --repetition-penalty 1
says err "settings: greedy (by"
same
suggest "$all" --no-defaults
says err "settings: greedy; at most"
same
suggest '{"do_sample": true}'
same --temperature 1
suggest '{"temperature": 0.75, "top_k": 20, "do_sample": false}'
same
suggest '{"temperature": 0.75, "top_k": 20}' --temperature 2
same --temperature 2 --top-k 20
suggest "$all" --receipt suggested.json
says suggested.json '"temperature": 0.75'
says suggested.json '"top_k": 20'
says suggested.json '"repetition_penalty": 1.25'
runs 0 "$samebit" verify suggests suggested.json
printf '{"prompt": "Hi there, hi"}\n{"prompt": "Hi there, hi", "top_k": 5}\n' >lines.jsonl
runs 0 "$samebit" generate suggests --batch lines.jsonl --count 9 --ignore-stops
cp out lines
suggest "$all"
says lines "\"line\":1,\"sample\":0,"
grep -F "\"digest\":\"$(sed -n 2p out)\"" lines >one || fail "a line is not as the checkpoint suggests"
suggest "$all" --top-k 5
grep -F "\"digest\":\"$(sed -n 2p out)\"" lines >two || fail "a line does not win over the checkpoint"
[ "$(cut -c1-9 one two | tr -d '\n')" = '{"line":1{"line":2' ] || fail "lines exchanged"
for wrong in '{"temperature": "hot"}' '{"top_p": 0}' '{"do_sample": 1}' '{"top_k": 1.5}' '['; do
    printf '%s' "$wrong" >suggests/generation_config.json
    runs 3 "$samebit" generate suggests -p a
    says err "suggests/generation_config.json"
    says err "; --no-defaults does without"
done

# So are the keys of a GGUF file, whose numbers are those of the folder "llama".
runs 0 "$samebit" generate "$models/llama.gguf" --tokens 1,50,7 --count 9 --ignore-stops --digest --temperature 0.75 --top-k 20 \
    --top-p 0.875 --min-p 0.0625 --repetition-penalty 1.25
cp out plain
says err "request 0, top-k 20, top-p 0.875, min-p 0.0625, repetition penalty 1.25; at most 9"
runs 0 "$samebit" generate "$models/suggests.gguf" --tokens 1,50,7 --count 9 --ignore-stops --digest
cmp out plain || fail "a GGUF file's suggestions are not in force"
says err "repetition penalty 1.25 (by general.sampling of the GGUF file, where no option says otherwise); at most 9"
runs 0 "$samebit" generate "$models/llama.gguf" --tokens 1,50,7 --count 9 --ignore-stops --digest
cp out plain
runs 0 "$samebit" generate "$models/suggests.gguf" --tokens 1,50,7 --count 9 --ignore-stops --digest --no-defaults
cmp out plain || fail "--no-defaults takes what a GGUF file suggests"
says err "settings: greedy; at most 9"
# With a byte of its type another, the penalty's bits are a whole number beyond its range.
LC_ALL=C sed 's/penalty_repeat\x06/penalty_repeat\x05/' "$models/suggests.gguf" >wrong.gguf
runs 3 "$samebit" generate wrong.gguf --tokens 1
says err "wrong.gguf: general.sampling.penalty_repeat is no number from 1e-06 to 1.04858e+06; --no-defaults does without"
runs 0 "$samebit" generate wrong.gguf --tokens 1 --count 1 --no-defaults

# Many requests at once: each is what it is alone, whatever runs beside it.
cat >requests.jsonl <<'END'
{"prompt": "Hi there, hi there, hi", "count": 9}
{"tokens": [1, 50, 7, 23, 88, 4, 61], "count": 9, "temperature": 1, "seed": 5, "ignore_stops": true}

{"prompt": "Hi there, hi there, hi there", "count": 5, "samples": 2, "temperature": 1.5, "request": 3}
END
runs 0 "$samebit" generate "$models/llama-text" --batch requests.jsonl --ignore-stops
cp out many
[ "$(wc -l <out)" -eq 4 ] || fail "not a line for each answer"
for options in "--parallel 1" "--parallel 2 --pages 4" "--prefill-chunk 1" "--threads 1" "--isa scalar" "--no-passes"; do
    # shellcheck disable=SC2086
    runs 0 "$samebit" generate "$models/llama-text" --batch requests.jsonl --ignore-stops $options
    cmp -s out many || fail "other answers with $options"
done
runs 0 "$samebit" generate "$models/llama-text" --batch requests.jsonl --ignore-stops
sed 's/,"digest":"[0-9a-f]*"//' out >without
runs 0 "$samebit" generate "$models/llama-text" --batch requests.jsonl --ignore-stops --no-digest
cmp -s out without || fail "other answers without digests"
"$samebit" generate "$models/llama-text" --batch - --ignore-stops <requests.jsonl >out 2>err || fail "standard input"
cmp -s out many || fail "other answers from standard input"
alone() {
    line=$1
    shift
    runs 0 "$samebit" generate "$models/llama-text" --ignore-stops --digest "$@"
    sed -n "${line}p" many >answer
    says answer "\"digest\":\"$(tail -1 out)\""
}
alone 1 -p "Hi there, hi there, hi" --count 9
alone 2 --tokens 1,50,7,23,88,4,61 --count 9 --temperature 1 --seed 5
alone 3 -p "Hi there, hi there, hi there" --count 5 --temperature 1.5 --request 3
says answer '"line":4,"sample":0,'
alone 4 -p "Hi there, hi there, hi there" --count 5 --temperature 1.5 --request 4
says answer '"line":4,"sample":1,'
runs 0 "$samebit" generate "$models/llama-text" -p "Hi there, hi there, hi there" --count 5 --temperature 1.5 --request 3 --samples 2 --ignore-stops
sed 's/"line":1/"line":4/' out >samples
sed -n 3,4p many | cmp -s - samples || fail "other samples of a prompt alone"
says err " of which were shared, and "

# Conversations, which the chat template writes; and a receipt of each answer, which is that of it alone.
cat >talks.jsonl <<'END'
{"messages": [{"role": "user", "content": "Hi"}], "temperature": 1, "seed": 3, "samples": 2}
{"prompt": "Hi there"}
{"messages": [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}, {"role": "user", "content": "Hm"}]}
END
talk() {
    runs 0 "$samebit" generate "$models/llama-text" --ignore-stops --context 300 --count 9 --date 2026-02-28 "$@"
}
talk --batch talks.jsonl --receipt receipts --sign "$source/tests/cli/keys/private.pem"
cp out many
[ "$(wc -l <many)" -eq 4 ] || fail "not a line for each answer"
talk --chat -p Hi --temperature 1 --seed 3 --request 1 --digest --receipt alone.json --sign "$source/tests/cli/keys/private.pem"
sed -n 2p many >answer
says answer "\"digest\":\"$(tail -1 out)\""
says answer '"receipt":"receipts/1-1.json"'
cmp receipts/1-1.json alone.json || fail "a receipt of many is not that of one"
printf '{"messages": [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}' >talk.json
talk --chat --conversation talk.json -p Hm --digest
sed -n 4p many >answer
says answer "\"digest\":\"$(tail -1 out)\""
says answer '"receipt":"receipts/3-0.json"'
[ "$(ls receipts | tr '\n' ' ')" = "1-0.json 1-1.json 2-0.json 3-0.json " ] || fail "receipts: $(ls receipts)"
for receipt in receipts/*; do
    runs 0 "$samebit" verify "$models/llama-text" "$receipt" --key "$source/tests/cli/keys/public.pem"
done
talk --batch talks.jsonl --receipt receipts --parallel 1
cp out again
cmp again many || fail "other answers where the folder is there"
runs 0 "$samebit" generate "$models/llama-text" -p "Hi there" --count 9 --ignore-stops --samples 2 --temperature 1 --receipt samples.d
says out '"receipt":"samples.d/1-1.json"'
runs 0 "$samebit" verify "$models/llama-text" samples.d/1-1.json
: >file
runs 3 "$samebit" generate "$models/llama-text" --batch talks.jsonl --receipt file
says err "--receipt file: with --batch or --samples a folder is expected"
silent out
# A receipt that cannot be written is an error of its answer alone.
mkdir -p full/2-0.json
runs 3 "$samebit" generate "$models/llama-text" --batch talks.jsonl --receipt full --count 2 --context 300
sed -n 3p out >answer
says answer '"error":"'
[ "$(grep -c '"digest":' out)" -eq 3 ] || fail "a receipt that cannot be written ends others"
runs 2 "$samebit" generate "$models/llama-text" --batch talks.jsonl --date tomorrow
says err "a day such as 2026-02-28"
runs 2 "$samebit" generate "$models/llama-text" --batch talks.jsonl --system a
says err "are for --chat"

# Texts at which a generation ends are left out.
runs 0 "$samebit" generate "$models/llama-text" -p "Hi " --count 9 --ignore-stops
text=$(head -1 out)
stop=$(printf %s "$text" | cut -c4-5)
before=$(printf '%s' "${text%%"$stop"*}")
runs 0 "$samebit" generate "$models/llama-text" -p "Hi " --count 9 --ignore-stops --stop "$stop" --stop "not there" --stats
[ "$(head -1 out)" = "$before" ] || fail "'$(head -1 out)' where '$before' comes before '$stop'"
says err "ended by stop"
runs 0 "$samebit" generate "$models/llama-text" -p "Hi " --count 9 --ignore-stops --stop "$text and more" --json
json end=limit
runs 0 "$samebit" generate "$models/llama-text" -p "Hi " --count 9 --ignore-stops --stop "$stop" --samples 2
says out '"end":"stop"'

# What is wrong is said before anything runs.
refuses_line() {
    printf '{"tokens": [1]}\n%s\n' "$1" >requests.jsonl
    runs 2 "$samebit" generate "$models/llama-text" --batch requests.jsonl
    says err "$2"
    [ -s out ] && fail "something ran before '$1' was refused"
}
refuses_line '[1]' "requests.jsonl: line 2: an object of JSON is expected"
refuses_line '{"tokens": [1]' "requests.jsonl: line 2: byte 14: "
refuses_line '{"tokens": [1], "prompt": "a"}' 'line 2: one of "prompt", "messages" and "tokens" is expected'
refuses_line '{}' 'line 2: one of "prompt", "messages" and "tokens" is expected'
refuses_line '{"messages": [{"role": "user", "content": "Hi"}], "prompt": "a"}' 'line 2: one of "prompt", "messages"'
refuses_line '{"messages": []}' 'line 2: "messages": a list of messages, of at least one, is expected'
refuses_line '{"messages": "Hi"}' 'line 2: "messages": a list of messages is expected'
refuses_line '{"messages": [{"role": "user", "content": "Hi"}, {"role": "user"}]}' 'line 2: "messages"[1].content: a text is expected'
refuses_line '{"messages": [{"role": "user", "content": 1.5}]}' 'line 2: "messages"[0].content: '
refuses_line '{"tokens": []}' '"tokens": a list of token ids'
refuses_line '{"tokens": [1.5]}' '"tokens": a whole number from 0'
refuses_line '{"tokens": [97]}' 'line 2: token 0 of 1 is 97; the model has 97'
refuses_line '{"tokens": [1], "count": -1}' '"count": a whole number from 0'
refuses_line '{"tokens": [1], "top_p": 0}' '"top_p": a number from 1e-06 to 1'
refuses_line '{"tokens": [1], "stop": ""}' '"stop": a text that is not empty'
refuses_line '{"tokens": [1], "tokens": [2]}' "line 2: byte"
refuses_line '{"tokens": [1], "colour": 1}' 'line 2: "colour" is not known; there are prompt, messages, tokens,'
refuses_line '{"prompt": "a", "samples": 0}' '"samples": a whole number from 1 to 4096'
printf '\n' >requests.jsonl
runs 2 "$samebit" generate "$models/llama-text" --batch requests.jsonl
says err "requests.jsonl: there are no requests"
runs 3 "$samebit" generate "$models/llama-text" --batch none.jsonl
says err "cannot read none.jsonl"
printf '{"tokens": [1, 2], "count": 30}\n' >requests.jsonl
runs 2 "$samebit" generate "$models/llama-text" --batch requests.jsonl --pages 4 --cache-memory 1M
says err "--pages and --cache-memory say the same: give one"
runs 2 "$samebit" generate "$models/llama-text" --tokens 1,5 --cache-memory 5K
says err "64 positions take"
runs 2 "$samebit" generate "$models/llama-text" --tokens 1,5 --samples 2 --cache-memory 10
says err "16 positions take"
runs 0 "$samebit" generate "$models/llama-text" --tokens 1,5 --count 3 --cache-memory 1M --stats
says err "; memory: "
runs 2 "$samebit" generate "$models/llama-text" --batch requests.jsonl --pages 1
says err "line 1: a prompt of 2 tokens and 30 new ones need 2 pages of 16 positions, and there are 1"
runs 2 "$samebit" generate "$models/llama-text" --batch requests.jsonl -p a
says err "--prompt does not go with --batch"
runs 2 "$samebit" generate "$models/llama-text" -p a --samples 2 --score-prompt
says err "--score-prompt does not go with --samples"
runs 2 "$samebit" generate "$models/llama-text" -p a --samples 2 --sign "$source/tests/cli/keys/private.pem"
says err "--sign needs --receipt"
runs 2 "$samebit" generate "$models/llama-text" -p a --parallel 2
says err "--parallel is for --batch and --samples"
runs 2 "$samebit" generate "$models/llama-text" --tokens 1 --no-digest
says err "--no-digest is for --batch and --samples"
runs 2 "$samebit" generate "$models/llama-text" -p a --stop ""
says err "--stop: a text that is not empty is expected"
finish
