#!/bin/sh
# Answers as `codex exec --json --output-last-message FILE -` does.
[ "$1" = exec ] || exit 2
while [ $# -gt 1 ]; do
  [ "$1" = --output-last-message ] && file=$2
  shift
done
[ "$1" = - ] || exit 3
cat >"$file"
echo '{"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 3}}'
