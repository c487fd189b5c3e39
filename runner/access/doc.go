// Package access decides what the caller of a request may do and see.
//
// An [Authorizer] looks up each action in the table of package rights, asks the cluster
// about its users, and records the actions of administrators in the audit log. It answers
// which user a token belongs to, which tasks a user may know of, which parts of a task an
// answer shows, and in which namespace and for which account a user may run a task.
package access
