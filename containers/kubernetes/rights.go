package kubernetes

import (
	"fmt"
	"strings"
)

// Scopes of a right.
const (
	InDaemon  = "daemon"  // the daemon's namespace
	InTasks   = "tasks"   // each namespace of tasks, including the daemon's
	InCluster = "cluster" // the whole cluster
)

// Right is a permission that carma's service account needs, with the reason.
type Right struct {
	Where, Group string // an empty group is the core group
	Resource     string // with the subresource, for example pods/log
	Verbs        []string
	Reason       string
}

// DaemonRights lists all rights of the daemon. Tests compare the list with the daemon's
// requests to a cluster and with the table of docs/kubernetes.md. The installed roles should be
// compared, too.
var DaemonRights = []Right{
	{InTasks, "", "pods", []string{"create"}, "start an attempt"},
	{InTasks, "", "pods", []string{"get", "list", "watch"}, "see its state, find it after a restart"},
	{InTasks, "", "pods", []string{"patch"}, "lift the gate; write why it ended; let go of an ended pod"},
	{InTasks, "", "pods", []string{"delete"}, "stop signal, kill, removal"},
	{InTasks, "", "pods/log", []string{"get"}, "output"},
	{InTasks, "", "pods/exec", []string{"get", "create"}, "`carma exec` (a WebSocket is a get; the cluster asks for create as well)"},
	{InTasks, "", "pods/attach", []string{"get", "create"}, "`-i` and `-t` of `carma run`, and `carma attach`"},
	{InTasks, "", "events", []string{"list"}, "why a pod does not start"},
	{InTasks, "resource.k8s.io", "resourceclaims", []string{"create", "get", "delete"}, "book GPU memory, read what was allocated, give it back"},
	{InTasks, "", "events", []string{"create"}, "why an annotated Job is refused or suspended"},
	{InTasks, "batch", "jobs", []string{"list", "watch"}, "see annotated Jobs, and what becomes of them"},
	{InTasks, "batch", "jobs", []string{"patch"}, "suspend a Job whose task has ended before it"},
	{InDaemon, "coordination.k8s.io", "leases", []string{"create", "get", "update"}, "one daemon works"},
	{InDaemon, "coordination.k8s.io", "leases", []string{"list", "watch"}, "what the agents tell"},
	{InCluster, "resource.k8s.io", "resourceclaims", []string{"list", "watch"}, "what others have booked"},
	{InCluster, "resource.k8s.io", "resourceslices", []string{"list", "watch"}, "where each GPU is"},
	{InCluster, "", "nodes", []string{"get", "list", "watch"}, "which take pods"},
	{InCluster, "authentication.k8s.io", "tokenreviews", []string{"create"}, "whose a token is; only with `listen`"},
	{InCluster, "authorization.k8s.io", "subjectaccessreviews", []string{"create"}, "what its user may do; only with `listen`"},
}

// AgentRights lists all rights of carma agent.
var AgentRights = []Right{
	{InCluster, "resource.k8s.io", "resourceslices", []string{"create", "get", "update", "delete"}, "publish simulated GPUs; not for NVIDIA's driver"},
	{InCluster, "resource.k8s.io", "resourceclaims", []string{"get"}, "prepare simulated GPUs for a pod; not for NVIDIA's driver"},
	{InCluster, "", "pods", []string{"list"}, "which process is which task's"},
	{InDaemon, "coordination.k8s.io", "leases", []string{"create", "get", "update"}, "tell what GPUs show"},
}

// Row returns the right as a row of the table in docs/kubernetes.md.
func (r Right) Row() string {
	what := r.Resource
	if r.Where == InCluster {
		what += " (cluster)"
	}
	return fmt.Sprintf("| %s | %s | %s |", what, strings.Join(r.Verbs, ", "), r.Reason)
}
