// Package storedoutput owns what the daemon knows of stored output beside the lines: whether output
// can be kept ([Health]), and which output of suites' helpers is kept after their containers
// are gone ([Helpers]). Package tasklog stores the lines.
package storedoutput
