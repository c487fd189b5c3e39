package breaker

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/model"
)

// A cluster may limit what runs in a namespace. It does its own accounting and counts other
// users' pods too, so carma learns of the limit only from a refusal. Then only the tasks of
// this namespace wait, without a GPU. One of them is launched as a probe at growing intervals,
// and soon after a task of the namespace has ended. If the probe is not refused, all tasks may
// be launched again.

// FullTest is the longest time between two probe launches in a full namespace. A refused probe
// costs the cluster one request, and carma does not notice when other users free room.
const FullTest = 30 * time.Second

// fullTurns is the number of tasks of a full namespace that are probed in turn, so that a
// task that needs more room than there is does not block the others.
const fullTurns = 5

func byNamespace(i *model.Breaker, namespace string) int { return cmp.Compare(i.Namespace, namespace) }

// Namespace returns the breaker of a full namespace, or nil if it is not full.
func (b *Breakers) Namespace(namespace string) *model.Breaker {
	if at, ok := slices.BinarySearchFunc(b.namespaceBreakers, namespace, byNamespace); ok {
		return b.namespaceBreakers[at]
	}
	return nil
}

// fills counts a refusal against the task's namespace.
func (b *Breakers) fills(t *model.Task, f model.Fault) {
	i := b.Namespace(t.Namespace)
	if i == nil {
		i = &model.Breaker{Namespace: t.Namespace, Since: b.Now()}
		at, _ := slices.BinarySearchFunc(b.namespaceBreakers, t.Namespace, byNamespace)
		b.namespaceBreakers = slices.Insert(b.namespaceBreakers, at, i)
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.AddFailed(t.ID)
	if i.Testing == t.ID || !i.Paused() { // other tasks were launched before the limit was known
		i.Wait, i.Testing = min(max(2*i.Wait, b.NextProbe()), FullTest), 0
		b.ProbeAt(i, b.Now().Add(i.Wait))
	}
	i.Tasks = slices.DeleteFunc(i.Tasks, func(id model.TaskID) bool { o := b.TaskByID(id); return o == nil || o != t && !o.Waiting() })
	t.NotBefore = b.Now().Add(i.Wait * time.Duration(min(len(i.Tasks)+1, fullTurns))) // one more turn, for a task that was not tried
	b.MarkDirty()
}

// IsNamespaceFull reports whether a task waits for its namespace.
func (b *Breakers) IsNamespaceFull(t *model.Task) bool { return b.Namespace(t.Namespace).Open(b.Now()) }

// testsNamespace records a launch in a full namespace as the probe. The next probe waits
// for its refusal.
func (b *Breakers) testsNamespace(t *model.Task) {
	if i := b.Namespace(t.Namespace); i.Paused() {
		i.Testing = t.ID
		b.ProbeAt(i, b.Now().Add(i.Wait))
	}
}

// CloseTestedNamespaces opens the namespaces whose probe was not refused in time. The probe's
// pod has been created then, even if the pod still waits for something else.
func (b *Breakers) CloseTestedNamespaces() {
	for _, i := range slices.Clone(b.namespaceBreakers) {
		if t := b.TaskByID(i.Testing); t != nil && t.Phase.Placed() && !i.Open(b.Now()) {
			b.opens(i)
		}
	}
}

// opens lets tasks of a namespace be launched again.
func (b *Breakers) opens(full *model.Breaker) {
	b.letGo(full)
	b.namespaceBreakers = slices.DeleteFunc(b.namespaceBreakers, func(i *model.Breaker) bool { return i == full })
	b.MarkDirty()
}

// TaskEndedIn handles the end of a task in a namespace. If the namespace was full, a probe
// follows as soon as the cluster has updated its quota.
func (b *Breakers) TaskEndedIn(namespace string) {
	i := b.Namespace(namespace)
	if !i.Paused() {
		return
	}
	i.Wait = min(b.NextProbe(), FullTest)
	b.letGo(i)
	if soon := b.Now().Add(i.Wait); i.Test <= b.Now() || i.Test > soon {
		b.ProbeAt(i, soon)
	}
}

// AwaitsNamespace reports whether a task waits for its namespace, or for its own next try
// there.
func (b *Breakers) AwaitsNamespace(t *model.Task) bool {
	return b.IsNamespaceFull(t) || b.Namespace(t.Namespace) != nil && t.Reason.Code == model.ReasonNamespaceFull && t.NotBefore > b.Now()
}

// NamespaceReason returns the reason for which a task waits for its namespace.
func (b *Breakers) NamespaceReason(t *model.Task) model.Reason {
	i := b.Namespace(t.Namespace)
	return model.Reason{Code: model.ReasonNamespaceFull, Name: t.Namespace, Text: i.Fault.Cause, Remedy: i.Fault.Remedy, Span: max(0, i.Test.Sub(b.Now()), t.NotBefore.Sub(b.Now()))}
}

// validFull reports whether a snapshot's full namespaces are valid: sorted, without
// duplicates, and each with a probe interval.
func validFull(all []*model.Breaker) bool {
	for n, i := range all {
		if i == nil || i.Wait <= 0 || n > 0 && all[n-1].Namespace >= i.Namespace {
			return false
		}
	}
	return true
}
