#!/bin/sh
# Reads everything, and says how much that was.
printf '{"bytes": %d}\n' "$(wc -c)"
