#!/bin/sh
# Neither reads nor prints.
trap '' PIPE
sleep "$1"
