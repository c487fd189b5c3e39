package kubernetes

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names in agents' reports. The daemon's requests to an agent are in the agent's Lease
// too.
const (
	agentLabel  = "carma.dev/node-agent"
	reportKey   = "carma.dev/gpus"
	forgiveKey  = "carma.dev/forgive"
	agentPrefix = "carma-node-"
)

// agents writes and reads what the nodes' agents and the daemon tell each other, and makes
// the agents' other requests.
type agents struct {
	c       *client
	written sync.Map // Leases as Tell wrote them last, by name
}

// reportOf reads an agent's report from its Lease.
func reportOf(l *coordinationv1.Lease) Report {
	r := Report{Node: l.Annotations[agentLabel], Text: l.Annotations[reportKey]}
	if l.Spec.RenewTime != nil {
		r.Count = l.Spec.RenewTime.UnixMicro()
	}
	return r
}

// Tell publishes the report of a node's agent. [Driver.Inventory] returns text. asked are
// the GPUs whose faults the agent is to clear; the agent lists the cleared ones in done
// at its next report.
//
// Tell does not read the Lease again after its own last write. If somebody has changed
// the Lease since, as a daemon that asks for something, the cluster refuses the write,
// and only then the Lease is read.
func (a *agents) Tell(ctx context.Context, node, text string, done []string) (asked []string, err error) {
	what := "publish what the GPUs of node " + node + " show"
	now, seconds, name := metav1.NewMicroTime(time.Now()), int32(30), agentPrefix+node
	change := func(l *coordinationv1.Lease) bool {
		asked = slices.DeleteFunc(forgiven(l), func(uuid string) bool { return slices.Contains(done, uuid) })
		l.Labels = map[string]string{managedBy: ours, agentLabel: "yes"}
		l.Annotations = map[string]string{agentLabel: node, reportKey: text}
		if len(asked) > 0 {
			l.Annotations[forgiveKey] = strings.Join(asked, ",")
		}
		l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &name, &now, &seconds
		return true
	}
	var written *coordinationv1.Lease
	if last, ok := a.written.LoadAndDelete(name); ok {
		l := last.(*coordinationv1.Lease)
		change(l)
		if written, err = a.c.sendLease(ctx, l); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return nil, fail(ctx, what, err)
		}
	}
	if written == nil || err != nil {
		if written, err = a.c.writeLease(ctx, what, name, change); err != nil {
			return nil, err
		}
	}
	a.written.Store(name, written)
	return asked, nil
}

// Told returns the last report of a node's agent, or empty if there is none.
func (a *agents) Told(ctx context.Context, node string) (text string, err error) {
	err = a.c.lease(ctx, "read what the agent of node "+node+" told last", agentPrefix+node, func(l *coordinationv1.Lease) bool {
		text = l.Annotations[reportKey]
		return false
	})
	return text, err
}

// Forgive asks a node's agent to forget the fault of a GPU.
func (a *agents) Forgive(ctx context.Context, node, uuid string) error {
	return a.c.lease(ctx, "ask the agent of node "+node+" to use a GPU again", agentPrefix+node, func(l *coordinationv1.Lease) bool {
		asked := forgiven(l)
		if l.ResourceVersion == "" || slices.Contains(asked, uuid) {
			return false // there is no agent; or it was asked already
		}
		l.Annotations[forgiveKey] = strings.Join(append(asked, uuid), ",")
		return true
	})
}

func forgiven(l *coordinationv1.Lease) []string {
	if text := l.Annotations[forgiveKey]; text != "" {
		return strings.Split(text, ",")
	}
	return nil
}
