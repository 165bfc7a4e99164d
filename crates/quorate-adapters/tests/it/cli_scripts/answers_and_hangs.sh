#!/bin/sh
# Prints a fine answer and does not end.
echo '{"would_block": false}'
exec sleep "$1"
