#!/bin/sh
# Prints bytes that are not UTF-8.
printf '{"issue": "\377\376"}'
