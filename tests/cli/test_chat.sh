#!/bin/sh
# samebit generate --chat as a conversation, line by line from standard input: each answer has the bits of the whole conversation run anew.
. "$(dirname "$0")/common.sh"
model=$work/../../llm/models/llama-text

# chat LINES OPTION…: a conversation of these lines.
chat() {
    lines=$1
    shift
    printf "$lines" | "$samebit" generate "$model" --chat --date 2026-02-28 --context 300 --threads 1 --count 9 --ignore-stops "$@" >out 2>err
    found=$?
    [ $found -eq "${wanted:-0}" ] || { fail "status $found: $lines"; cat out err; }
}
# whole TEXT OPTION…: the answer to the text that the template writes, and its digest.
whole() {
    text=$1
    shift
    "$samebit" generate "$model" -p "<s>[2026-02-28]$text[assistant]" --bare --context 300 --threads 1 --count 9 --ignore-stops --digest "$@" >alone 2>/dev/null ||
        fail "no answer to $text"
}

chat 'Hi\n' --digest
whole '[user]Hi</s>'
cmp -s out alone || fail "a first message has another answer"
first=$(sed -n 1p alone)
chat 'Hi\nAnd more?\n' --digest --system "Be brief" --stats
whole '[system]Be brief</s>[user]Hi</s>'
sed -n 1,2p out | cmp -s - alone || fail "another answer with a system's message"
said=$(sed -n 1p alone)
whole "[system]Be brief</s>[user]Hi</s>[assistant]$said</s>[user]And more?</s>"
sed -n 3,4p out | cmp -s - alone || fail "the second answer is not that of the whole conversation"
says err "of the prompt, 0 of which the cache had"
[ "$(sed -n 's/.* \([0-9]*\) of which the cache had.*/\1/p' err | sort -n | tail -1)" -ge 40 ] || fail "the cache was not made use of"
says err "cut off after 9 tokens: --count allows more"

# Settings go by all tokens, those that the cache had too, and by their positions.
for settings in "--temperature 1 --seed 3" "--repetition-penalty 1.5" "--temperature 1.5 --repetition-penalty 2 --presence-penalty 1"; do
    # shellcheck disable=SC2086
    chat 'Hi\nAnd more?\n' --digest $settings
    # shellcheck disable=SC2086
    whole "[user]Hi</s>" $settings
    said=$(sed -n 1p alone)
    # shellcheck disable=SC2086
    whole "[user]Hi</s>[assistant]$said</s>[user]And more?</s>" $settings
    sed -n 3,4p out | cmp -s - alone || fail "another second answer with $settings"
done

# Commands.
chat 'Hi\n/retry\n/retry\n/save talk.json\n' --temperature 1 --seed 3 --digest
whole '[user]Hi</s>' --temperature 1 --seed 3 --request 2
sed -n 5,6p out | cmp -s - alone || fail "/retry is not the next request"
[ "$(sed -n 3p out)" != "$(sed -n 1p out)" ] || fail "/retry gives the same"
"$tool" json talk.json messages.0.role=user messages.0.content=Hi messages.1.role=assistant "messages.1.content=$(sed -n 1p alone)" ||
    fail "/save wrote $(cat talk.json)"
chat 'Ho\n/edit Hi\n' --digest
sed -n 3,4p out >second
chat 'Hi\n' --digest
cmp -s out second || fail "/edit"
for forget in /reset /clear /undo; do
    chat "Ho\n$forget\nHi\n" --digest
    sed -n 3,4p out | cmp -s - second || fail "$forget"
done
chat 'Hi\nHo\n/undo\n/retry\n' --digest
says err "without --temperature the answer is the same every time"
sed -n 5,6p out | cmp -s - second || fail "/undo forgets more than the last message"
chat 'H\\\ni\n' --digest
whole '[user]H
i</s>'
cmp -s out alone || fail "a message of two lines"
chat '//i\n' --digest
whole '[user]/i</s>'
cmp -s out alone || fail "a message that begins with /"
chat '\n   \n/help\n/quit\nHi\n'
silent out
says err "/edit [TEXT]"
chat ''
silent out
chat 'Hi' --digest
cmp -s out second || fail "a last line without an end"
chat 'Hi\n' --stop "$(printf %s "$first" | cut -c3-4)" --digest
[ "$(sed -n 1p out)" = "$(printf %s "$first" | cut -c1-2)" ] || fail "--stop"

# A conversation that was saved goes on as if it had been typed, from a command or an option, sampled too.
chat 'Hi\nAnd more?\n/save talk.json\nHm\n' --temperature 1 --seed 3 --digest --system "Be brief"
tail -2 out >third
chat '/load talk.json\nHm\n' --temperature 1 --seed 3 --digest
cmp -s out third || fail "/load: another answer"
says err "(5 messages are from talk.json)"
chat 'Ho\n/load talk.json\nHm\n/save again.json\n' --temperature 1 --seed 3 --digest
tail -2 out | cmp -s - third || fail "/load: what was said before is left behind"
[ "$("$tool" json again.json messages.0.role=system messages.5.content=Hm)" = "" ] || fail "/load and /save"
chat 'Hm\n' --conversation talk.json --temperature 1 --seed 3 --digest
cmp -s out third || fail "--conversation: another answer"
chat '/retry\n' --conversation talk.json --temperature 1 --seed 3 --digest
cp out retried
chat 'Hi\nAnd more?\n/retry\n' --temperature 1 --seed 3 --digest --system "Be brief"
tail -2 out | cmp -s - retried || fail "/retry behind --conversation"
runs 0 "$samebit" generate "$model" --chat --conversation talk.json -p Hm --date 2026-02-28 --context 300 --threads 1 --count 9 --ignore-stops \
    --temperature 1 --seed 3 --digest --receipt talked.json
cmp -s out third || fail "--conversation with --prompt: another answer"
runs 0 "$samebit" verify "$model" talked.json
wanted=0
# Where the user has spoken last, that is answered.
printf '{"messages": [{"role": "user", "content": "Hi"}]}' >open.json
chat '/load open.json\n' --digest
cmp -s out second || fail "/load: an open question is not answered"
chat '' --conversation open.json --digest
cmp -s out second || fail "--conversation: an open question is not answered"
printf '{"messages": []}' >empty.json
chat 'Ho\n/load empty.json\nHi\n' --digest
tail -2 out | cmp -s - second || fail "/load: a conversation without messages"

# What goes wrong is said; the conversation goes on, and the exit status tells.
wanted=3
chat '/foo\nHi\n' --digest
says err "there is no such command"
cmp -s out second || fail "a command that there is not"
chat '/undo\n'
says err "/undo: nothing has been said"
chat '/retry\n/edit\n/save\n/reset now\n'
says err "/retry: nothing has been said"
says err "/save: give the file"
says err "takes nothing behind its name"
chat 'Hi\n/edit\n'
says err "/edit: give the new text"
chat '/save no/such/folder.json\n'
says err "no/such/folder.json"
chat 'a\377b\nHi\n' --digest
says err "the message is not UTF-8"
cmp -s out second || fail "what was not UTF-8 is left behind"
chat 'a\000b\n'
says err "zero byte"
long=$(printf '%0400d' 0)
chat "$long\nHi\n" --digest
says err "more than the context of 300"
tail -2 out | cmp -s - second || fail "a message that is too long is left behind"
refuses_file() {
    printf "$1" >wrong.json
    wanted=3
    chat 'Ho\n/load wrong.json\n/undo\nHi\n' --digest
    says err "wrong.json: $2"
    tail -2 out | cmp -s - second || fail "/load has changed the conversation: $1"
    runs 2 "$samebit" generate "$model" --chat --conversation wrong.json -p Hi
    says err "wrong.json: $2"
}
refuses_file '' "line 1, column 0: "
refuses_file '{"messages":\n [{"role" "user"}]}' "line 2, column "
refuses_file '[]' 'an object with "messages" and nothing else'
refuses_file '{"messages": [], "tools": []}' 'an object with "messages" and nothing else'
refuses_file '{"messages": [], "messages": []}' "line 1, column 27: duplicate"
refuses_file '{"messages": {}}' '"messages": a list of messages is expected'
refuses_file '{"messages": [{"role": "user", "content": "a"}, "Hi"]}' '"messages"[1]: an object with "role" and "content"'
refuses_file '{"messages": [{"content": "Hi"}]}' '"messages"[0].role: a text such as "user" is expected'
refuses_file '{"messages": [{"role": 1, "content": "Hi"}]}' '"messages"[0].role: '
refuses_file '{"messages": [{"role": "user"}]}' '"messages"[0].content: a text is expected'
refuses_file '{"messages": [{"role": "user", "content": 1}]}' '"messages"[0].content: a text is expected'
refuses_file '{"messages": [{"role": "user", "content": "\377"}]}' "line 1, column "
refuses_file '{"messages": [{"role": "user", "content": "\\u0000"}]}' "line 1, column "
printf '{"messages": [{"role": "user", "content": ["a"]}]}' >list.json
wanted=3
chat '/load list.json\n/edit\nHi\n'
says err "/edit: give the new text"
chat '/load\n/load nowhere.json\nHi\n' --digest
says err "/load: give the file"
says err "nowhere.json: cannot be opened"
cmp -s out second || fail "/load without a file"
runs 3 "$samebit" generate "$model" --chat --conversation nowhere.json -p Hi
says err "nowhere.json: cannot be opened"
runs 2 "$samebit" generate "$model" --chat --conversation - -p Hi
says err "not from standard input"
runs 2 "$samebit" generate "$model" --chat --conversation open.json --system a
says err "the file has the system's message"
runs 2 "$samebit" generate "$model" --conversation open.json -p Hi
says err "--system, --conversation and --date are for --chat"
for option in "--tokens 1" "--json" "--receipt r.json" "--samples 2" "--logprobs" "--score-prompt"; do
    # shellcheck disable=SC2086
    runs 2 "$samebit" generate "$model" --chat $option
    says err "does not go with a conversation"
done
runs 2 "$samebit" generate "$model" --chat --json-schema -
says err "cannot both be standard input"

# A signal while a message is awaited.
mkfifo pipe
for signal in INT TERM; do
    (trap - INT; exec "$samebit" generate "$model" --chat --date 2026-02-28 <pipe >out 2>err) &
    process=$!
    exec 3>pipe
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        grep -q settings err && break
        sleep 0.2
    done
    sleep 0.3
    kill -$signal $process
    wait $process
    found=$?
    exec 3>&-
    case $signal-$found in
    INT-130 | TERM-143) ;;
    *) fail "SIG$signal ended it with $found" ;;
    esac
done
finish
