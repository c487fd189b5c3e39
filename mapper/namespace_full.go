package mapper

import (
	"cmp"
	"slices"
	"time"
)

// A cluster may limit what runs in a namespace. It does its own accounting and counts
// other users' pods too, so carma learns of the limit only from a refusal. Then the tasks
// of this namespace wait, without a GPU, and no others do. One of them is launched as a
// probe at growing intervals, and soon after a task there has ended. If it is not
// refused, all may be launched again.

// ScopeNamespace: the namespace of the task takes no more now.
const ScopeNamespace BreakerScope = "namespace"

// fullTest is the longest time between two probe launches in a full namespace. A refused
// probe costs the cluster one request, and others may free room unnoticed by carma.
const fullTest = 30 * time.Second

// fullTurns is the number of tasks of a full namespace that are probed in turn, so that a
// task that needs more room than there is does not block the others.
const fullTurns = 5

func byNamespace(i *breaker, namespace string) int { return cmp.Compare(i.Namespace, namespace) }

// fullAt returns the breaker of a full namespace, or nil if it is not full.
func (s *State) fullAt(namespace string) *breaker {
	if at, ok := slices.BinarySearchFunc(s.namespaceBreakers, namespace, byNamespace); ok {
		return s.namespaceBreakers[at]
	}
	return nil
}

// fills counts a refusal against the task's namespace.
func (s *State) fills(t *Task, f Fault) {
	i := s.fullAt(t.Namespace)
	if i == nil {
		i = &breaker{Namespace: t.Namespace, Since: s.now}
		at, _ := slices.BinarySearchFunc(s.namespaceBreakers, t.Namespace, byNamespace)
		s.namespaceBreakers = slices.Insert(s.namespaceBreakers, at, i)
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.failed(t.ID)
	if i.Testing == t.ID || !i.paused() { // other tasks were launched before the limit was known
		i.Wait, i.Testing = min(max(2*i.Wait, s.nextProbe()), fullTest), 0
		s.probeAt(i, s.now.Add(i.Wait))
	}
	i.Tasks = slices.DeleteFunc(i.Tasks, func(id TaskID) bool { o := s.tasks[id]; return o == nil || o != t && !o.waiting() })
	t.NotBefore = s.now.Add(i.Wait * time.Duration(min(len(i.Tasks)+1, fullTurns))) // one more turn, for a task that was not tried
	s.dirty = true
}

// noRoom reports whether a task waits for its namespace.
func (s *State) noRoom(t *Task) bool { return s.fullAt(t.Namespace).shut(s.now) }

// bounded reports whether a task waits because of a quota, or because its namespace is
// full.
func (s *State) bounded(t *Task) bool { return s.overQuota(t).Code != "" || s.noRoom(t) }

// testsNamespace records a launch in a full namespace as the probe. The next probe waits
// for its refusal.
func (s *State) testsNamespace(t *Task) {
	if i := s.fullAt(t.Namespace); i.paused() {
		i.Testing = t.ID
		s.probeAt(i, s.now.Add(i.Wait))
	}
}

// settleNamespaces opens the namespaces whose probe was not refused in time: its pod has
// been created, even if it still waits for something else.
func (s *State) settleNamespaces() {
	for _, i := range slices.Clone(s.namespaceBreakers) {
		if t := s.tasks[i.Testing]; t != nil && t.Phase.Placed() && !i.shut(s.now) {
			s.opens(i)
		}
	}
}

// opens lets tasks of a namespace be launched again.
func (s *State) opens(full *breaker) {
	s.letGo(full)
	s.namespaceBreakers = slices.DeleteFunc(s.namespaceBreakers, func(i *breaker) bool { return i == full })
	s.dirty = true
}

// roomIn handles the end of a task in a namespace. If the namespace was full, a probe
// follows soon, when the cluster has counted again.
func (s *State) roomIn(namespace string) {
	i := s.fullAt(namespace)
	if !i.paused() {
		return
	}
	i.Wait = min(s.nextProbe(), fullTest)
	s.letGo(i)
	if soon := s.now.Add(i.Wait); i.Test <= s.now || i.Test > soon {
		s.probeAt(i, soon)
	}
}

// awaitsRoom reports whether a task waits for its namespace, or for its own next try
// there.
func (s *State) awaitsRoom(t *Task) bool {
	return s.noRoom(t) || s.fullAt(t.Namespace) != nil && t.Reason.Code == ReasonNamespaceFull && t.NotBefore > s.now
}

// fullness returns the reason for which a task waits for its namespace.
func (s *State) fullness(t *Task) Reason {
	i := s.fullAt(t.Namespace)
	return Reason{Code: ReasonNamespaceFull, Name: t.Namespace, Text: i.Fault.Cause, Remedy: i.Fault.Remedy, Span: max(0, i.Test.Sub(s.now), t.NotBefore.Sub(s.now))}
}

// validFull reports whether a snapshot's full namespaces are valid: sorted, without
// duplicates, and each with a probe interval.
func validFull(all []*breaker) bool {
	for n, i := range all {
		if i == nil || i.Wait <= 0 || n > 0 && all[n-1].Namespace >= i.Namespace {
			return false
		}
	}
	return true
}
