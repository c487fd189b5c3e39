// Package shell splits a command line into the commands that it runs. It parses the
// scripts of sh -c "...", and removes wrappers, programs that only start another program:
// env, nohup, timeout, conda run, uv run and others (wrappers.go). It expands variables
// with known values, and runs nothing.
//
// The package mvdan.cc/sh parses scripts. A script with a syntax error has no commands.
package shell
