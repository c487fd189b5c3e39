package kubernetes

import (
	"net/http"
	"reflect"
	"slices"
	"testing"

	"carma/containers/kubernetes/manifest"
)

// TestForgive checks that a daemon asks an agent to clear faults until the agent confirms it,
// and asks only once for the same fault.
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
	forgive("GPU-a") // there is no agent
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

// TestTellAsksOnce checks that a report sends one request. A change of the Lease by another
// client is noticed at the next report.
func TestTellAsksOnce(t *testing.T) {
	c := newCluster(t)
	d, other := c.driver(t, Options{}), c.driver(t, Options{})
	defer d.Close()
	defer other.Close()
	refused := 0 // error code for the next PUT
	refuse := func(code int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		refused = code
	}
	tell := func(what, text string, want ...string) []string {
		t.Helper()
		var all []string
		c.mu.Lock()
		c.fault = func(r *http.Request) (code int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			all = append(all, r.Method)
			if r.Method == http.MethodPut {
				code, refused = refused, 0
			}
			return code
		}
		c.mu.Unlock()
		asked, err := d.Tell(t.Context(), "node-1", text, nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fault = nil
		if l := c.leases["carma-node-node-1"]; err == nil && l.Annotations[reportKey] != text {
			t.Errorf("%s: %q is told", what, l.Annotations[reportKey])
		}
		if !slices.Equal(all, want) {
			t.Errorf("%s: %q, want %q (%v)", what, all, want, err)
		}
		return asked
	}
	tell("first", "one", "GET", "POST")
	tell("then", "two", "PUT")
	if err := other.Forgive(t.Context(), "node-1", "GPU-a"); err != nil {
		t.Fatal(err)
	}
	if asked := tell("a daemon asks", "three", "PUT", "GET", "PUT"); !slices.Equal(asked, []string{"GPU-a"}) {
		t.Errorf("asked for %q", asked)
	}
	if asked := tell("it is not done", "four", "PUT"); !slices.Equal(asked, []string{"GPU-a"}) {
		t.Errorf("asked for %q", asked)
	}
	if _, err := other.Tell(t.Context(), "node-1", "another agent", nil); err != nil {
		t.Fatal(err)
	}
	tell("another agent", "five", "PUT", "GET", "PUT")
	tell("alone again", "six", "PUT")
	c.alter(func() { delete(c.leases, "carma-node-node-1") })
	tell("deleted", "seven", "PUT", "GET", "POST")
	refuse(http.StatusNotFound)
	tell("deleted, as others say it", "eight", "PUT", "GET", "PUT")
	refuse(http.StatusServiceUnavailable)
	tell("the cluster is away", "nine", "PUT")
	tell("it is back", "ten", "GET", "PUT")
	tell("and goes on", "eleven", "PUT")
}

// TestPodsOn checks that an agent learns which pods of its node run tasks of its daemon.
func TestPodsOn(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	d := c.driver(t, Options{})
	defer d.Close()
	spec := task("a", "block:0")
	spec.Identity = map[string]string{"carma.task": "17", "carma.attempt": "2"}
	begin(t, d, spec)
	helper := task("helper", "block:0")
	helper.Identity = map[string]string{"carma.suite": "s"} // not a task
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
	c.pods["c"].Labels[manifest.DaemonKey] = "another"
	c.mu.Unlock()
	got, err := d.PodsOn(t.Context(), "node-1")
	if want := []NodePod{{UID: uid, Task: 17, Attempt: 2}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	c.mu.Lock()
	delete(c.pods["a"].Annotations, manifest.LabelsKey) // a pod that another tool has labelled
	c.mu.Unlock()
	if got, err = d.PodsOn(t.Context(), "node-1"); err != nil || len(got) != 1 || got[0].Task != 17 {
		t.Errorf("by the cluster's labels: %+v, %v", got, err)
	}
}
