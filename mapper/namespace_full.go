package mapper

import (
	"cmp"
	"slices"
	"time"
)

// A cluster may bound what runs in a namespace. The books of that are its own, and count
// what others run there, so carma hears of it only by a refusal. Then tasks of this
// namespace wait, with no GPU, and nobody else does. One of them is launched as a test at
// growing intervals, and soon after a task there has ended; if it is not refused, all may
// go again.

// ScopeNamespace: the namespace of the task takes no more now.
const ScopeNamespace BreakerScope = "namespace"

// fullTest is the longest time between two test launches in a full namespace. A refused
// one costs the cluster one request, and others may make room that carma does not see.
const fullTest = 30 * time.Second

// fullTurns is how many tasks of a full namespace take turns in being tried, so that one
// that wants more room than there is does not keep the others from it.
const fullTurns = 5

func byNamespace(i *breaker, namespace string) int { return cmp.Compare(i.Namespace, namespace) }

// fullAt is what is known of a full namespace; nil: it is not full.
func (s *State) fullAt(namespace string) *breaker {
	if at, ok := slices.BinarySearchFunc(s.namespaceBreakers, namespace, byNamespace); ok {
		return s.namespaceBreakers[at]
	}
	return nil
}

// backfilling counts a refusal against the task's namespace.
func (s *State) fills(t *Task, f Fault) {
	i := s.fullAt(t.Namespace)
	if i == nil {
		i = &breaker{Namespace: t.Namespace, Since: s.now}
		at, _ := slices.BinarySearchFunc(s.namespaceBreakers, t.Namespace, byNamespace)
		s.namespaceBreakers = slices.Insert(s.namespaceBreakers, at, i)
	}
	i.Fault, i.Failures = f, i.Failures+1
	i.failed(t.ID)
	if i.Testing == t.ID || !i.paused() { // others were launched before it was known
		i.Wait, i.Testing = min(max(2*i.Wait, s.nextProbe()), fullTest), 0
		s.probeAt(i, s.now.Add(i.Wait))
	}
	i.Tasks = slices.DeleteFunc(i.Tasks, func(id TaskID) bool { o := s.tasks[id]; return o == nil || o != t && !o.waiting() })
	t.NotBefore = s.now.Add(i.Wait * time.Duration(min(len(i.Tasks)+1, fullTurns))) // and one that was not tried
	s.dirty = true
}

// noRoom reports whether a task waits for its namespace.
func (s *State) noRoom(t *Task) bool { return s.fullAt(t.Namespace).shut(s.now) }

// bounded reports whether a task waits for something that its user has, or others in its
// namespace.
func (s *State) bounded(t *Task) bool { return s.overQuota(t).Code != "" || s.noRoom(t) }

// testsNamespace notes a launch in a full namespace. The next one waits for its refusal.
func (s *State) testsNamespace(t *Task) {
	if i := s.fullAt(t.Namespace); i.paused() {
		i.Testing = t.ID
		s.probeAt(i, s.now.Add(i.Wait))
	}
}

// settleNamespaces opens the namespaces whose test was not refused in time: its pod is
// made, whatever it waits for now.
func (s *State) settleNamespaces() {
	for _, i := range slices.Clone(s.namespaceBreakers) {
		if t := s.tasks[i.Testing]; t != nil && t.Phase.Placed() && !i.shut(s.now) {
			s.opens(i)
		}
	}
}

// opens: tasks of a namespace may be launched again.
func (s *State) opens(full *breaker) {
	s.letGo(full)
	s.namespaceBreakers = slices.DeleteFunc(s.namespaceBreakers, func(i *breaker) bool { return i == full })
	s.dirty = true
}

// roomIn follows the end of a task in a namespace: if that was full, a test comes soon,
// when the cluster has counted again.
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

// awaitsRoom reports whether a task waits for its namespace, or until it is tried there
// again itself.
func (s *State) awaitsRoom(t *Task) bool {
	return s.noRoom(t) || s.fullAt(t.Namespace) != nil && t.Reason.Code == ReasonNamespaceFull && t.NotBefore > s.now
}

// fullness is why a task waits for its namespace.
func (s *State) fullness(t *Task) Reason {
	i := s.fullAt(t.Namespace)
	return Reason{Code: ReasonNamespaceFull, Name: t.Namespace, Text: i.Fault.Cause, Remedy: i.Fault.Remedy, Span: max(0, i.Test.Sub(s.now), t.NotBefore.Sub(s.now))}
}

// validFull reports whether a snapshot's full namespaces can be: in order, each once, and
// each is tested again.
func validFull(all []*breaker) bool {
	for n, i := range all {
		if i == nil || i.Wait <= 0 || n > 0 && all[n-1].Namespace >= i.Namespace {
			return false
		}
	}
	return true
}
