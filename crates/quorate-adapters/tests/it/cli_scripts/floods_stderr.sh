#!/bin/sh
# Fills stderr for ever.
exec yes "$1" >&2
