// Package rights owns the table of the rights to tasks.
//
// A right depends on three things: the action, the role of the caller, and the owner of the
// task. The table has one row per action, and [Policy] answers from it. The package knows
// no requests, no tasks and no configuration: its user passes the caller and the owner, and
// turns each answer into a refusal or a hidden field.
//
// Tasks of root and of the daemon's own account are protected: a program in them has rights
// that an administrator must not get from the group of administrators. An administrator may
// stop, hold and move such a task, and may not enter it or read its private parts.
package rights
