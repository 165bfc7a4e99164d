#!/bin/sh
# Reports in an ordinary answer that the quota is used up.
echo "You've hit your usage limit. Your limit resets at 3pm."
