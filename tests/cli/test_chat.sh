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
