#!/usr/bin/env bash
# Reviews what the pull request changes, or keeps its comment up to date, as the inputs of action.yml say.
set -euo pipefail

patterns=()
while IFS= read -r pattern; do
    # Without the blanks around it.
    pattern=${pattern#"${pattern%%[![:space:]]*}"} pattern=${pattern%"${pattern##*[![:space:]]}"}
    [ -z "$pattern" ] || patterns+=("$pattern")
done <<<"$QUORATE_INPUT_PATHS"

options=()
[ -z "$QUORATE_INPUT_EXECUTOR" ] || options+=(--executor "$QUORATE_INPUT_EXECUTOR")
[ -z "$QUORATE_INPUT_MAX_MONEY" ] || options+=(--max-money "$QUORATE_INPUT_MAX_MONEY")
[ "$QUORATE_INPUT_TRUST" != true ] || options+=(--trust)

if [ "$QUORATE_INPUT_COMMENT" = true ]; then
    exec quorate github comment ${options[@]+"${options[@]}"} -- ${patterns[@]+"${patterns[@]}"}
fi
[ -z "$QUORATE_INPUT_FAIL_ON" ] || options+=(--fail-on "$QUORATE_INPUT_FAIL_ON")
# The token is for comments alone.
unset GITHUB_TOKEN
exec quorate github review --reports "$RUNNER_TEMP/quorate-reports" ${options[@]+"${options[@]}"} -- ${patterns[@]+"${patterns[@]}"}
