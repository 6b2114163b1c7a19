#!/bin/sh
# Speaks like Claude Code, on a night in which an hour takes HOUR_MS milliseconds. What it did is noted in
# `account`: a line when it begins, and one when it has answered.
if [ "$1" = --version ]; then echo '2.1.325 (Claude Code)'; exit; fi
out=OUTSIDE/night
note() { echo "$PITON_LANE $*" >> "$out/account"; }
# once NAME: whether that did not happen yet.
once() { [ ! -e "$out/once-$1" ] && : > "$out/once-$1"; }
hours() { sleep "$(awk "BEGIN { print $1 * HOUR_MS / 1000 }")"; }
id=none previous=
for word in "$@"; do
  case $previous in --session-id|--resume) id=$word ;; esac
  previous=$word
done
prompt=$(cat)
note BEGUN
printf '{"type":"system","subtype":"init","session_id":"%s","model":"m"}\n' "$id"
printf '{"type":"assistant","session_id":"%s","parent_tool_use_id":null,"message":{"id":"%s","usage":{"input_tokens":1000,"output_tokens":10},"content":[{"type":"text","text":"I do it."}]}}\n' \
  "$id" "$PITON_LANE-$PITON_ATTEMPT-$$"
ends() {
  printf '{"type":"result","subtype":"success","session_id":"%s","is_error":%s,"terminal_reason":"%s","result":"%s"%s}\n' "$id" "$1" "$2" "$3" "$4"
}
# limit HOURS: the session limit is reached, and resets later.
limit() {
  reset=$(awk "BEGIN { printf \"%d\", $(date +%s) + 1 + $1 * HOUR_MS / 1000 }")
  printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' "$reset"
  ends true api_error 'You have hit your session limit' ',"api_error":"usage_limit_reached"'
  note LIMITED
  exit 1
}
case $PITON_LANE in
  main)
    hours 0.5
    once first-limit && limit 2
    echo 'the outline' > outline.txt ;;
  api)
    hours 0.7
    echo 'api' > shared.txt
    if once wrong; then echo wrong > api.txt; else echo right > api.txt; fi ;;
  ui)
    case $prompt in
      *onflict*) once conflict; hours 0.2; echo 'api and ui' > shared.txt ;;
      *) hours 1; echo 'ui' > shared.txt; echo 'ui' > ui.txt ;;
    esac
    once second-limit && limit 1 ;;
  docs)
    hours 0.3
    if [ "$(grep -c '^docs CUT OFF' "$out/account")" -lt 2 ]; then
      note CUT OFF
      ends true api_error 'API Error: Connection error.'
      exit 1
    fi
    echo docs > docs.txt ;;
esac
note DONE
ends false completed ok
