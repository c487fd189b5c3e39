// Package suite reads Compose files as suites: each service becomes tasks of
// one group. The official loader (compose-spec/compose-go) reads the file; what
// carma does with every key of the Compose specification stands in a table
// (keys.go): honoured, warned of, or refused. docs/suites.md has it in prose.
//
// The file is also parsed here, before the loader sees it, for two reasons: to
// name the line of what is wrong, and to bound its size, as aliases can make a
// small file a large one.
//
// The package submits, builds and prints nothing.
package suite
