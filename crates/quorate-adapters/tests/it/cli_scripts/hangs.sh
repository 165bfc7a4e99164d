#!/bin/sh
# Does nothing, for long.
exec sleep "$1"
