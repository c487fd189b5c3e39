// Package compose reads Compose files as suites: each service becomes tasks of one group.
// The official loader (compose-spec/compose-go) reads the file. A table (keys.go) lists
// carma's verdict on every key of the Compose specification: honoured, warned, or
// refused. docs/suites.md describes it.
//
// The file is also parsed here, before the loader, for two reasons. Errors get a line
// number. And the expanded size is bounded, because aliases can expand a small file to a
// large one.
//
// The package submits, builds and prints nothing.
package compose
