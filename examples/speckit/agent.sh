#!/bin/sh
# Stands in for a coding agent, so that the example runs without one. It reads the prompt and writes
# what the task asks for.
set -eu
cat > /dev/null
mkdir -p src
case $PITON_STEP in
T001) echo "greeting" > project.txt ;;
T002) echo 'name() { echo "$1"; }' > src/name.sh ;;
T003) echo 'greet() { echo "Hello, $1!"; }' > src/greet.sh ;;
T004) printf '. src/name.sh\n. src/greet.sh\ngreet "$(name "$1")"\n' > main.sh ;;
esac
echo "$PITON_STEP is done."
