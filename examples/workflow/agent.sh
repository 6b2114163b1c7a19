#!/bin/sh
# Stands in for a coding agent, so that the example runs without one. It reads the prompt and writes
# what the phase asks for.
set -eu
cat > /dev/null
case $PITON_PHASE in
1) echo 'name=$1' > greet.sh ;;
2)
  # Wrong, until a person has had a look.
  if [ -e fixed ]; then echo 'echo "Hello, $name!"' >> greet.sh; else echo 'echo "Hi"' > hi.txt; fi ;;
3) echo "Greets whoever is named." > README.txt ;;
4) echo "sh greet.sh Ada" > demo.sh ;;
esac
echo "Phase $PITON_PHASE is written."
