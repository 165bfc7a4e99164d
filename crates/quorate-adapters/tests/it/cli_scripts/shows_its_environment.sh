#!/bin/sh
# Prints the names of the variables that it sees.
env | cut -d= -f1 | sort
