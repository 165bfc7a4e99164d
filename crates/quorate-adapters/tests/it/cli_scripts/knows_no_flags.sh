#!/bin/sh
# A release of a CLI from before a judge's flags.
[ "$1" = --version ] && echo "0.9.1 (Claude Code)" && exit
[ "$1" = --help ] && echo "  --print  --output-format <format>" && exit
echo "error: unknown option '--safe-mode'" >&2
exit 1
