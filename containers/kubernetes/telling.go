package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// Names in agents' reports. The agent's Lease also contains the daemon's requests to the agent.
const (
	agentLabel  = "carma.dev/node-agent"
	reportKey   = "carma.dev/gpus"
	forgiveKey  = "carma.dev/forgive"
	agentPrefix = "carma-node-"
)

// agents writes and reads the messages between the daemon and the nodes' agents, and sends the
// agents' other requests.
type agents struct {
	c       *client
	written sync.Map // Leases in the state that Tell wrote last, by name
}

// reportOf reads an agent's report from its Lease.
func reportOf(l *coordinationv1.Lease) Report {
	r := Report{Node: l.Annotations[agentLabel], Text: l.Annotations[reportKey]}
	if l.Spec.RenewTime != nil {
		r.Count = l.Spec.RenewTime.UnixMicro()
	}
	return r
}

// Tell publishes the report of a node's agent. [Driver.Inventory] returns text. asked lists the
// GPUs whose faults the agent must clear. The agent lists the cleared GPUs in done with its
// next report.
//
// Tell does not read the Lease again after its own last write. If a daemon has written a
// request into the Lease since then, the cluster refuses the write, and only then Tell reads
// the Lease.
func (a *agents) Tell(ctx context.Context, node, text string, done []string) (asked []string, err error) {
	what := "publish what the GPUs of node " + node + " show"
	now, seconds, name := metav1.NewMicroTime(time.Now()), int32(30), agentPrefix+node
	change := func(l *coordinationv1.Lease) bool {
		asked = slices.DeleteFunc(forgiven(l), func(uuid string) bool { return slices.Contains(done, uuid) })
		l.Labels = map[string]string{manifest.ManagedBy: manifest.Owner, agentLabel: "yes"}
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

// Told returns the last report of a node's agent, or an empty text if there is none.
func (a *agents) Told(ctx context.Context, node string) (text string, err error) {
	err = a.c.lease(ctx, "read what the agent of node "+node+" told last", agentPrefix+node, func(l *coordinationv1.Lease) bool {
		text = l.Annotations[reportKey]
		return false
	})
	return text, err
}

// Forgive asks a node's agent to clear the fault of a GPU.
func (a *agents) Forgive(ctx context.Context, node, uuid string) error {
	return a.c.lease(ctx, "ask the agent of node "+node+" to use a GPU again", agentPrefix+node, func(l *coordinationv1.Lease) bool {
		asked := forgiven(l)
		if l.ResourceVersion == "" || slices.Contains(asked, uuid) {
			return false // there is no agent, or it has been asked already
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

// Labels of a container that runs a task, written by package runner.
const (
	taskLabel    = "carma.task"
	attemptLabel = "carma.attempt"
)

// NodePod is a pod on a node, with the attempt of the task that runs in it.
type NodePod struct {
	UID           string
	Task, Attempt int64
}

// PodsOn returns the pods on a node, in any namespace, that run tasks of the daemon of this
// namespace. The apiserver answers from its cache.
func (a *agents) PodsOn(ctx context.Context, node string) ([]NodePod, error) {
	var list corev1.PodList
	options := &metav1.ListOptions{ResourceVersion: "0", LabelSelector: manifest.ManagedBy + "=" + manifest.Owner, FieldSelector: "spec.nodeName=" + node}
	if err := a.c.core.Get().Resource("pods").VersionedParams(options, parameters).Do(ctx).Into(&list); err != nil {
		return nil, fail(ctx, "read which pods are on node "+node, err)
	}
	var out []NodePod
	for i := range list.Items {
		pod := &list.Items[i]
		if !a.c.ns.Made(pod.Namespace, pod.Labels) {
			continue
		}
		labels := manifest.LabelsOf(pod)
		if labels == nil {
			labels = pod.Labels
		}
		task, wrong := strconv.ParseInt(labels[taskLabel], 10, 64)
		if wrong != nil || task <= 0 {
			continue // a helper of carma, not a task
		}
		attempt, _ := strconv.ParseInt(labels[attemptLabel], 10, 64)
		out = append(out, NodePod{UID: string(pod.UID), Task: task, Attempt: attempt})
	}
	return out, nil
}

// Offer publishes the GPUs of a node. The slice replaces an earlier slice of the same name.
func (a *agents) Offer(ctx context.Context, slice resourcev1.ResourceSlice) error {
	what := "publish the GPUs of node " + slice.Name
	err := a.c.resource.Post().Resource("resourceslices").Body(&slice).Do(ctx).Error()
	if !apierrors.IsAlreadyExists(err) {
		return fail(ctx, what, err)
	}
	var old resourcev1.ResourceSlice
	if err := a.c.resource.Get().Resource("resourceslices").Name(slice.Name).Do(ctx).Into(&old); err != nil {
		return fail(ctx, what, err)
	}
	old.Spec.Devices = slice.Spec.Devices
	old.Spec.Pool.Generation++
	return fail(ctx, what, a.c.resource.Put().Resource("resourceslices").Name(slice.Name).Body(&old).Do(ctx).Error())
}

// Withdraw deletes a slice.
func (a *agents) Withdraw(ctx context.Context, name string) error {
	err := a.c.resource.Delete().Resource("resourceslices").Name(name).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fail(ctx, "take back the GPUs "+name, err)
}

// Given is a device that a claim got from one driver.
type Given struct {
	Request, Pool, Device string
	// Share identifies a claim among the claims that share the device, or is empty if the
	// device is not shared.
	Share string
}

// Given returns the devices that a claim got from one driver.
func (a *agents) Given(ctx context.Context, driver, namespace, name, uid string) ([]Given, error) {
	what := fmt.Sprintf("read claim %s/%s", namespace, name)
	var claim resourcev1.ResourceClaim
	if err := a.c.resource.Get().Namespace(namespace).Resource("resourceclaims").Name(name).Do(ctx).Into(&claim); err != nil {
		return nil, fail(ctx, what, err)
	}
	if string(claim.UID) != uid || claim.Status.Allocation == nil {
		return nil, fmt.Errorf("%s: %w: it is another one, or not allocated", what, containers.ErrNotFound)
	}
	var out []Given
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Driver != driver {
			continue
		}
		g := Given{Request: r.Request, Pool: r.Pool, Device: r.Device}
		if r.ShareID != nil {
			g.Share = string(*r.ShareID)
		}
		out = append(out, g)
	}
	return out, nil
}
