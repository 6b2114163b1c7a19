#!/bin/sh
# Speaks like Claude Code. What it does for a step is in STEP.story; what it did is noted in `account`.
if [ "$1" = --version ]; then echo '2.1.325 (Claude Code)'; exit; fi
out=OUTSIDE/agents
step=$PITON_STEP
. "$out/$step.story"
note() { echo "$step $PITON_ATTEMPT $*" >> "$out/account"; }
previous=
for word in "$@"; do
  case $previous in
    --session-id) id=$word; [ ! -e "$out/session-$id" ] || note REUSED ;;
    --resume)
      id=$word
      [ -e "$out/session-$id" ] || { note GONE; echo 'No conversation found' >&2; exit 1; } ;;
  esac
  previous=$word
done
prompt=$(cat)
exec 9>> "$out/lock-$id"
flock -n 9 || note DOUBLE
: > "$out/session-$id"
case $prompt in
  *'worked on this step before you'*) note BRIEFED ;;
  *) note BEGUN ;;
esac
printf '{"type":"system","subtype":"init","session_id":"%s","model":"m"}\n' "$id"

# message BLOCK: one block of the answer to the request under way; each has the same usage.
message() {
  printf '{"type":"assistant","session_id":"%s","parent_tool_use_id":null,"message":{"id":"%s","usage":{"input_tokens":%s,"cache_read_input_tokens":5,"output_tokens":10},"content":[%s]}}\n' \
    "$id" "$step-$PITON_ATTEMPT-$n" "$context" "$1"
}
# request CONTEXT: the model answers in two blocks, and calls the shell.
n=0
request() {
  n=$((n + 1)) context=$1
  note ASKED $((context + 15))
  message '{"type":"text","text":"I do it."}'
  note SAID $((context + 15))
  message '{"type":"tool_use","id":"t'$n'","name":"Bash","input":{"command":"make"}}'
}
# answered: the shell is done.
answered() {
  printf '{"type":"user","session_id":"%s","message":{"content":[{"type":"tool_result","tool_use_id":"t%s"}]}}\n' "$id" "$n"
}
# ends IS_ERROR REASON TEXT [MORE]: the final event.
ends() {
  printf '{"type":"result","subtype":"success","session_id":"%s","is_error":%s,"terminal_reason":"%s","result":"%s"%s}\n' "$id" "$1" "$2" "$3" "$4"
}
work() { sleep "$pause"; echo "$PITON_ATTEMPT $n" >> "work-$step.txt"; sleep "$pause"; }

filled=$(ls "$out" | grep -c "^full-$step-")
if [ "$filled" = "$limit_after" ] && [ ! -e "$out/limited-$step" ]; then
  : > "$out/limited-$step"
  request 1000; work; answered
  note LIMITED
  printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' $(($(date +%s) + 1))
  ends true api_error 'You have hit your limit' ',"api_error":"usage_limit_reached"'
  exit 1
fi
# A session whose window is full stays so when it is continued.
if [ -e "$out/full-$step-$id" ] || [ "$filled" -lt "$fills" ]; then
  : > "$out/full-$step-$id"
  request 2000; work; answered
  request "$fill"; work
  until [ -e "$PITON_STOP_FILE" ]; do sleep 0.02; done
  note FULL
  answered; ends false hook_stopped ''
  exit 0
fi
for part in $parts; do request "${part}000"; work; answered; done
result=good
if [ "$wrong" = 1 ] && [ ! -e "$out/wrong-$step" ]; then : > "$out/wrong-$step"; result=bad; fi
echo "$result" > "done-$step.txt"
note DONE "$result"
ends false completed ok
