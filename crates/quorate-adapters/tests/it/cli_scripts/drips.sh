#!/bin/sh
# Prints one byte a second, for ever.
export ZOO="$1"
while :; do printf x; sleep 1; done
