// Package taskfile reads task files: YAML that describes one or several tasks,
// with arrays, sweeps and dependencies between them. docs/tasks.md has the
// schema. The package also reads the short forms of these on the command line.
//
// It checks everything that can be checked without a daemon. Every error has its
// file, line and key. Anchors and aliases are not allowed, so a small file cannot
// become a large one.
package taskfile
