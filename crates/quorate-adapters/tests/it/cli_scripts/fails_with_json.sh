#!/bin/sh
# Prints a fine answer and fails.
echo '{"would_block": false}'
echo 'could not save the session' >&2
exit 1
