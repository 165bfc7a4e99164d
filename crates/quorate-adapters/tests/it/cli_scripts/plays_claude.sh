#!/bin/sh
# Answers as `claude --print --output-format json` does, when it is called as a judge.
[ "$1 $2 $3 $4" = "--print --output-format json --json-schema" ] || exit 2
case " $* " in *" --tools= --strict-mcp-config "*" --model big "*) ;; *) exit 3 ;; esac
[ "$(ls -A | wc -l)" = 0 ] && [ "$CLAUDE_CODE_DISABLE_ATTACHMENTS" = 1 ] || exit 4
cat >/dev/null
echo '{"type": "result", "is_error": false, "result": "", "structured_output": {"ok": true},'
echo ' "usage": {"input_tokens": 7, "output_tokens": 2}, "modelUsage": {"big-1": {"outputTokens": 2}}}'
