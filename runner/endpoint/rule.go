package endpoint

import (
	"carma/containers"
	"carma/runner/rights"
)

// Rule lists the rights that a request needs, in the table of rights and in the cluster
// over TLS.
type Rule struct {
	// Acts are the actions that are looked up in the table of rights. The first action
	// decides whether the request is answered. Without the right to another action, parts
	// of the answer are left out.
	Acts []rights.Action
	// Pods is the additional right that a user of the cluster needs: to pods in the
	// namespace of the task, or of the group's tasks. It is nil if the request is about no
	// task.
	Pods *containers.Access
	// Anybody reports whether the request is answered without a caller.
	Anybody bool
	// Never is the reason why the request is not offered over TLS, or empty.
	Never string
}

// Needs returns the rule of a request about the server.
func Needs(acts ...rights.Action) Rule { return Rule{Acts: acts} }

// OnPods returns the rule of a request about a task or a group.
func OnPods(pods *containers.Access, acts ...rights.Action) Rule { return Rule{Acts: acts, Pods: pods} }

// Local returns the rule of a request that is not offered over TLS.
func Local(never string, acts ...rights.Action) Rule { return Rule{Acts: acts, Never: never} }
