// Package rights contains the table of the rights to tasks.
//
// A right depends on three things: the action, the role of the caller, and the owner of
// the task. The table has one row per action, which [Policy] evaluates. The package does
// not depend on requests, tasks or the configuration: its user passes the caller and the
// owner, and turns each result into a refusal or a hidden field.
//
// Tasks of root and of the daemon's own account are protected: a program in them has
// rights that membership in the group of administrators must not give. An administrator
// may stop, hold and move such a task, and may not enter it or read its private parts.
package rights
