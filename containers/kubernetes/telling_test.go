package kubernetes

import (
	"reflect"
	"slices"
	"testing"
)

// TestForgive: a daemon asks an agent to forget faults; the agent is asked until it
// says that it has, and not twice for the same.
func TestForgive(t *testing.T) {
	c := newCluster(t)
	d := c.driver(t, Options{})
	defer d.Close()
	tell := func(text string, done ...string) []string {
		t.Helper()
		asked, err := d.Tell(t.Context(), "node-1", text, done)
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
	forgive := func(uuid string) {
		t.Helper()
		if err := d.Forgive(t.Context(), "node-1", uuid); err != nil {
			t.Fatal(err)
		}
	}
	forgive("GPU-a") // nobody is there
	if got, err := d.Told(t.Context(), "node-1"); got != "" || err != nil {
		t.Errorf("told %q, %v before there was an agent", got, err)
	}
	if got := tell("one"); len(got) != 0 {
		t.Errorf("asked for %v", got)
	}
	for _, uuid := range []string{"GPU-a", "GPU-b", "GPU-a"} {
		forgive(uuid)
	}
	for range 2 { // the first answer may be lost
		if got := tell("two"); !slices.Equal(got, []string{"GPU-a", "GPU-b"}) {
			t.Errorf("asked for %v", got)
		}
	}
	if got := tell("three", "GPU-a"); !slices.Equal(got, []string{"GPU-b"}) {
		t.Errorf("asked for %v", got)
	}
	if got := tell("four", "GPU-b"); len(got) != 0 {
		t.Errorf("asked for %v", got)
	}
	if got, err := d.Told(t.Context(), "node-1"); got != "four" || err != nil {
		t.Errorf("told %q, %v", got, err)
	}
}

// TestPodsOn: an agent learns which pods of its node are tasks of its daemon.
func TestPodsOn(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	d := c.driver(t, Options{})
	defer d.Close()
	spec := task("a", "block:0")
	spec.Identity = map[string]string{"carma.task": "17", "carma.attempt": "2"}
	begin(t, d, spec)
	helper := task("helper", "block:0")
	helper.Identity = map[string]string{"carma.suite": "s"} // no task
	begin(t, d, helper)
	elsewhere := spec
	elsewhere.Name = "b"
	begin(t, d, elsewhere)
	foreign := spec
	foreign.Name = "c"
	begin(t, d, foreign)
	c.mu.Lock()
	uid := string(c.pods["a"].UID)
	c.pods["b"].Spec.NodeName = "node-2"
	c.pods["c"].Labels[daemonKey] = "another"
	c.mu.Unlock()
	got, err := d.PodsOn(t.Context(), "node-1")
	if want := []NodePod{{UID: uid, Task: 17, Attempt: 2}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	c.mu.Lock()
	delete(c.pods["a"].Annotations, labelsKey) // of a pod that another tool labels
	c.mu.Unlock()
	if got, err = d.PodsOn(t.Context(), "node-1"); err != nil || len(got) != 1 || got[0].Task != 17 {
		t.Errorf("by the cluster's labels: %+v, %v", got, err)
	}
}
