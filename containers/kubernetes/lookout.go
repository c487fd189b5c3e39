package kubernetes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"carma/containers/kubernetes/manifest"
)

// podWatch observes pods, and keeps the last observed state of each.
type podWatch struct {
	c        *client
	hints    hints
	handover handover
}

func newPodWatch(c *client) *podWatch {
	return &podWatch{c: c, hints: hints{c: c, turns: turns{every: quietEvery}}}
}

// lookout observes a pod and each of its changes.
type lookout struct {
	told  *hint
	leave func()
	pod   *corev1.Pod // last observed state
	// due reports whether it is time to read again a pod without events. It may be nil.
	due func(*corev1.Pod) bool
	// turn is closed when this lookout may read the pod without an event. It is nil if the lookout
	// has not asked for a turn.
	turn  <-chan struct{}
	unask func()
}

// lookout begins to observe a pod. The first state comes from first, which is called
// after the subscription to changes.
func (w *podWatch) lookout(id string, first func() (*corev1.Pod, error)) (*lookout, error) {
	_, at := w.c.ns.Split(id)
	l := &lookout{}
	l.told, l.leave = w.hints.subscribe(at)
	pod, err := first()
	if err != nil {
		l.end()
		return nil, err
	}
	l.pod = small(pod)
	return l, nil
}

// end ends the observation.
func (l *lookout) end() {
	l.heard()
	l.leave()
}

// heard gives up the turn to read, because an event has arrived.
func (l *lookout) heard() {
	if l.turn != nil {
		l.unask()
		l.turn = nil
	}
}

// follow calls look with a pod's present state and with each new state, until look returns true
// or an error.
func (w *podWatch) follow(ctx context.Context, what, id string, look func(*corev1.Pod) (done bool, err error)) error {
	l, err := w.lookout(id, func() (*corev1.Pod, error) { return w.c.pod(ctx, what, id) })
	if err != nil {
		return err
	}
	defer l.end()
	return w.lookOn(ctx, what, id, l, maxQuiet, look)
}

// lookOn is [podWatch.follow] with an existing lookout. After the time every without an event,
// the lookout asks for its turn to read the pod. look never gets an older state than before,
// but may get the same state again. It must not change the pod.
func (w *podWatch) lookOn(ctx context.Context, what, id string, l *lookout, every time.Duration, look func(*corev1.Pod) (done bool, err error)) error {
	for {
		if done, err := look(l.pod); done || err != nil {
			return err
		}
		next, err := w.next(ctx, what, id, l, every)
		if err != nil {
			return err
		}
		l.heard()
		l.pod = next
	}
}

// next waits for an event about a pod, or until it is time to read the pod. It reads the pod at
// once if a deadline of the pod has passed, and otherwise when it has its turn.
func (w *podWatch) next(ctx context.Context, what, id string, l *lookout, every time.Duration) (*corev1.Pod, error) {
	over := manifest.Ended(l.pod)
	for {
		select {
		case <-l.told.changed:
			if next := l.told.take(); next != nil && next.UID == l.pod.UID {
				if newer(next, l.pod) {
					return next, nil
				}
				continue
			}
		case <-time.After(every):
			if late := !over && manifest.Ended(l.pod) || l.due != nil && l.due(l.pod); !late {
				if l.turn == nil {
					l.turn, l.unask = w.hints.turns.ask()
				}
				continue
			}
		case <-l.turn:
		case <-ctx.Done():
			return nil, fail(ctx, what, ctx.Err())
		}
		pod, err := w.c.pod(ctx, what, id)
		if err != nil {
			return nil, err
		}
		return small(pod), nil
	}
}

// newer reports whether the cluster has changed pod after than. It also returns true if the two
// cannot be compared.
func newer(pod, than *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, than.ResourceVersion)
	return err != nil || order > 0
}

// small removes the fields of a pod that no caller reads, because many pods are kept for a long
// time.
func small(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields = nil
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulingGates: pod.Spec.SchedulingGates, ResourceClaims: pod.Spec.ResourceClaims}
	for _, c := range pod.Spec.Containers {
		env := slices.Clip(slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name != manifest.VisibleGPUs }))
		spec.Containers = append(spec.Containers, corev1.Container{Name: c.Name, TTY: c.TTY, Env: env})
	}
	pod.Spec = spec
	return pod
}
