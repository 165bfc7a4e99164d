#!/bin/sh
# Dies by a signal.
kill -SEGV $$
