#!/bin/sh
# Answers, and leaves a daemon behind that starts a successor every few milliseconds and exits.
trap '' TERM HUP
export ZOO="$1"
next='export ZOO; trap "" TERM HUP; setsid sh -c "$NEXT" & sleep 0.005'
NEXT="$next" setsid sh -c "export NEXT; $next" </dev/null >/dev/null 2>&1 &
sleep 0.1
echo '{"ok": true}'
