#!/bin/sh
# Says, as if all were well, that there is no quota.
echo "You've hit your usage limit. Your limit resets at 3pm."
