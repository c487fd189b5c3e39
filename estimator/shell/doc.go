// Package shell splits a command line into the commands that it runs. It looks into
// sh -c "...", and behind programs that only start another one: env, nohup, timeout,
// conda run, uv run and others (wrappers.go). It expands the variables whose values it
// is given, and runs nothing.
//
// Scripts are parsed by mvdan.cc/sh. A script that is no shell grammar has no commands.
package shell
