#!/bin/sh
# Answers, and leaves a process behind in a session of its own.
setsid sleep "$1" &
sleep 0.1
echo '{"ok": true}'
