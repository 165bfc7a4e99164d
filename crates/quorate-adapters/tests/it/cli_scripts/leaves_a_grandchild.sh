#!/bin/sh
# Answers, and leaves a process behind that holds stdout and stderr.
sleep "$1" &
echo '{"ok": true}'
