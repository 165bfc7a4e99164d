#!/bin/sh
# Answers, and leaves a daemon behind: forked twice, orphaned at once, no environment, no pipe, a session of its own.
(env -i setsid sh -c 'trap "" TERM HUP; sleep "$1" & :' daemon "$1" </dev/null >/dev/null 2>&1 &)
sleep 0.1
echo '{"ok": true}'
