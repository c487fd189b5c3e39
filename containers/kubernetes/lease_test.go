package kubernetes

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// setBack changes the Lease as if its holder had not renewed it in time.
func (c *cluster) setBack(d *Driver) {
	d.election.mu.Lock()
	defer d.election.mu.Unlock()
	d.election.until = time.Now().Add(-time.Second)
}

// TestHold checks that only one daemon works in a namespace. The next one waits and gets the
// Lease when it is released. A daemon that has lost it starts nothing, and its lost function is
// called.
func TestHold(t *testing.T) {
	c := newCluster(t)
	first, second, third := c.driver(t, Options{}), c.driver(t, Options{}), c.driver(t, Options{})
	defer second.Close()
	defer third.Close()
	never := func(other string) { t.Errorf("%s has the Lease", other) }
	if err := first.Hold(t.Context(), "a", never, never); err != nil {
		t.Fatal(err)
	}
	if fault := first.Check(t.Context()); fault != nil {
		t.Errorf("with the Lease: %+v", fault)
	}
	// A daemon that was killed and restarted need not wait.
	again := c.driver(t, Options{})
	defer again.Close()
	if err := again.Hold(t.Context(), "a", never, never); err != nil {
		t.Fatal(err)
	}
	waiting, got := make(chan string, 1), make(chan error, 1)
	go func() { got <- second.Hold(t.Context(), "b", func(other string) { waiting <- other }, never) }()
	if other := <-waiting; other != "a" {
		t.Errorf("the second waits for %q", other)
	}
	if fault := second.Check(t.Context()); fault == nil || !strings.Contains(fault.Cause, "another daemon, a, has the Lease carma-daemon in namespace lab") {
		t.Errorf("without the Lease: %+v", fault)
	}
	_ = first.Close()
	if err := again.Release(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if fault := second.Check(t.Context()); fault != nil {
		t.Errorf("the second, with the Lease: %+v", fault)
	}
	// While the cluster does not answer, nothing is started after the Lease has expired.
	c.mu.Lock()
	c.fault = func(*http.Request) int { return http.StatusServiceUnavailable }
	c.mu.Unlock()
	c.setBack(second)
	if fault := second.Check(t.Context()); fault == nil || fault.Code != "lease" {
		t.Errorf("not renewed in time: %+v", fault)
	}
}

// TestLost checks that a daemon notices at its next renewal that another daemon has taken its
// Lease.
func TestLost(t *testing.T) {
	c := newCluster(t)
	d := c.driver(t, Options{})
	defer d.Close()
	lost := make(chan string, 1)
	if err := d.Hold(t.Context(), "a", func(string) {}, func(other string) { lost <- other }); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	other := "b"
	l := c.leases[leaseName].DeepCopy()
	l.Spec.HolderIdentity, l.ResourceVersion = &other, "taken"
	c.leases[leaseName] = l
	c.mu.Unlock()
	select {
	case got := <-lost:
		if fault := d.Check(t.Context()); got != "b" || fault == nil || !strings.Contains(fault.Cause, "another daemon, b,") {
			t.Errorf("%q, %+v", got, fault)
		}
	case <-time.After(4 * renewEvery):
		t.Fatal("the daemon does not hear of it")
	}
}
