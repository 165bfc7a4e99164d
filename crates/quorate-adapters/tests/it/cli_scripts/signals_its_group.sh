#!/bin/sh
# Sends SIGTERM and SIGINT to its own group, as a script that ends its helpers does, and answers afterwards.
trap '' TERM INT
kill -TERM 0
kill -INT 0
sleep 0.3
echo '{"ok": true}'
