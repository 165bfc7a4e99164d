#!/bin/sh
# Answers as `codex exec --json --output-last-message FILE -` does, when it is called as a judge.
if [ "$*" = "debug models --bundled" ]; then echo '{"models": [{"slug": "m", "tool_mode": "code_mode_only"}]}'; exit; fi
[ "$1" = exec ] || exit 2
while [ $# -gt 1 ]; do
  [ "$1" = --output-last-message ] && file=$2
  shift
done
[ "$1" = - ] || exit 3
grep -q '"tool_mode":"direct"' "$CODEX_HOME/../models.json" || exit 4
cat >"$file"
echo '{"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 3}}'
