#!/bin/sh
# Stands in for a coding agent, so that the example runs without one. It reads the prompt and writes
# what the stage is asked for.
set -eu
cat > /dev/null
folder=specs/001-greeting
case $PITON_PHASE in
spec | clarify) ;; # The spec is there, and nothing in it is open.
architect)
  echo "A shell function is enough." > "$folder/research.md"
  cat > "$folder/adr.md" <<'ADR'
# Greeting

One shell script, `greet.sh`.

## Constitution Check

| Article | Status | Notes |
|---|---|---|
| I. Small | COMPLIES | one file |
| II. Tested | COMPLIES | `greet-test.sh` |
ADR
  ;;
tasks) echo "- [ ] T001 Write greet.sh" > "$folder/tasks.md" ;;
tdd)
  echo '[ "$(sh greet.sh Ada)" = "Hello, Ada!" ]' > greet-test.sh
  echo "greet-test.sh covers the acceptance criterion." > "$folder/test-certification.md"
  ;;
programmer) echo 'echo "Hello, $1!"' > greet.sh ;;
testrunner) sh greet-test.sh && echo "greet-test.sh: passed" > "$folder/test-report.md" ;;
code-review) echo "No findings." > "$folder/code-review.md" ;;
security) echo "The name is printed, not run." > "$folder/security-report.md" ;;
refactor) echo "Nothing to refactor." > "$folder/refactor-proposals.md" ;;
esac
