#!/bin/sh
# Prints bytes that are no text.
printf '{"issue": "\377\376"}'
