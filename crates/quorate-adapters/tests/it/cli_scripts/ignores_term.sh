#!/bin/sh
# Cannot be asked to end.
trap '' TERM INT HUP
export ZOO="$1"
while :; do sleep "$1"; done
