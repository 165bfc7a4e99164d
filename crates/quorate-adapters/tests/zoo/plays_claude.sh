#!/bin/sh
# Answers as `claude --print --output-format json` does.
[ "$1 $2 $3 $4" = "--print --output-format json --json-schema" ] || exit 2
[ "$6 $7" = "--model big" ] || exit 3
cat >/dev/null
echo '{"type": "result", "is_error": false, "result": "", "structured_output": {"ok": true},'
echo ' "usage": {"input_tokens": 7, "output_tokens": 2}, "modelUsage": {"big-1": {"outputTokens": 2}}}'
