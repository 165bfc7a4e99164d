#!/bin/sh
# Stops, as Ctrl-Z would stop it.
export ZOO="$1"
kill -STOP $$
sleep "$1"
