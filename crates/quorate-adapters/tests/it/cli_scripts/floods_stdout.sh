#!/bin/sh
# Fills stdout for ever.
exec yes "$1"
