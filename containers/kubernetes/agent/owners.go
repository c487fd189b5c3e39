package agent

import (
	"context"
	"time"

	"carma/containers/kubernetes"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
)

// pods is the part of [kubernetes.Driver] that lists the pods of tasks.
type pods interface {
	PodsOn(ctx context.Context, node string) ([]kubernetes.NodePod, error)
}

// owners caches the attempt of each pod of the node. It asks the cluster only when a process of
// an unknown pod has GPU memory, because the attempt of a pod never changes.
type owners struct {
	pods pods
	node string
	root string // folder in which /proc is found
	now  func() time.Time

	tasks map[string]kubernetes.NodePod // keyed by the pod's uid
	// foreign contains the pods that belonged to no task when the cluster was asked, with the time
	// of the question. The cluster's answer may be older than the kubelet's state, so they are
	// asked about again.
	foreign map[string]time.Time
}

// foreignFor is the time for which a pod that the cluster does not know counts as
// foreign.
const foreignFor = 10 * time.Second

func newOwners(of pods, node string) *owners {
	return &owners{pods: of, node: node, root: "/", now: time.Now, tasks: map[string]kubernetes.NodePod{}, foreign: map[string]time.Time{}}
}

// attribute sets the task of each process that runs in a pod. A process in a pod of another
// owner is foreign, even if its environment names a task. For a process in no pod, and for a
// process that has ended, attribute keeps the source's own attribution.
func (o *owners) attribute(ctx context.Context, samples []gpu.Sample) error {
	in := map[int][]string{}
	unknown := false
	for _, s := range samples {
		for _, p := range s.Processes {
			if _, seen := in[p.PID]; seen || p.PID <= 0 {
				continue
			}
			uids, err := cgroup.Pods(o.root, p.PID)
			if err != nil || len(uids) == 0 {
				continue
			}
			in[p.PID] = uids
			unknown = unknown || !o.known(uids)
		}
	}
	if unknown {
		if err := o.ask(ctx, in); err != nil {
			return err
		}
	}
	for i := range samples {
		for j := range samples[i].Processes {
			p := &samples[i].Processes[j]
			uids, inPod := in[p.PID]
			if !inPod {
				continue
			}
			p.Task, p.Attempt = 0, 0
			for _, uid := range uids {
				if of, ok := o.tasks[uid]; ok {
					p.Task, p.Attempt = model.TaskID(of.Task), int(of.Attempt)
					break
				}
			}
		}
	}
	return nil
}

// known reports whether one of the pods belongs to a task, or all pods are known to be foreign.
func (o *owners) known(uids []string) bool {
	all := true
	for _, uid := range uids {
		if _, ok := o.tasks[uid]; ok {
			return true
		}
		at, ok := o.foreign[uid]
		all = all && ok && o.now().Sub(at) < foreignFor
	}
	return all
}

// ask reads the pods of the node from the cluster. It removes pods that the cluster does not
// list any more, but keeps pods that still have processes, because such a pod was removed while
// it ran.
func (o *owners) ask(ctx context.Context, in map[int][]string) error {
	list, err := o.pods.PodsOn(ctx, o.node)
	if err != nil {
		return err
	}
	before := o.tasks
	o.tasks, o.foreign = map[string]kubernetes.NodePod{}, map[string]time.Time{}
	for _, p := range list {
		o.tasks[p.UID] = p
	}
	for _, uids := range in {
		for _, uid := range uids {
			if _, ok := o.tasks[uid]; ok {
				continue
			}
			if was, ok := before[uid]; ok {
				o.tasks[uid] = was
			} else {
				o.foreign[uid] = o.now()
			}
		}
	}
	return nil
}
