// Package taskfile reads task files: YAML that describes one task or several,
// with arrays, sweeps and dependencies between them. docs/tasks.md has the
// schema. It also reads the short forms of these on the command line.
//
// It checks what can be known without a daemon, and every error has its file,
// line and key. Anchors and aliases are not part of the format, so a small file
// cannot become a large one.
package taskfile
