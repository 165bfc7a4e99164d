#!/bin/sh
# Starts a tree of processes, each in its own way, none of whom ends when asked to; and hangs.
trap '' TERM HUP
export ZOO="$1"
(sleep "$1" & sleep "$1") &
setsid sh -c 'sleep "$1" & sleep "$1"' branch "$1" &
env -i setsid sh -c 'trap "" TERM; sleep "$1" & setsid sleep "$1" & sleep "$1"' branch "$1" &
(env -i setsid sh -c 'sleep "$1" &' twig "$1" &)
sleep "$1"
