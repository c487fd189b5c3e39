// Package taskfile reads task files: YAML that describes one or several tasks, with
// arrays, sweeps and dependencies between them. docs/tasks.md describes the schema. The
// package also parses the short forms on the command line.
//
// It checks everything that can be checked without a daemon. Every error has its file,
// line and key. Anchors and aliases are not allowed, so that a small file cannot expand
// to a large one.
package taskfile
