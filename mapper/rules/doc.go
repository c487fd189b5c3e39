// Package rules contains the text form of the mapper's options: a key for each option,
// with its usage text and check, and the parsing and printing of values. The daemon's
// settings and the rules of replays use the same keys. The values' forms also serve the
// other settings. The package reads no files and knows no settings of the daemon.
package rules
