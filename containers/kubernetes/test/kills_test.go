//go:build kubernetes

package test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"carma/runner/api"
)

// bench returns a cluster with an agent and a daemon on this machine, for namespace lab. flags
// are flags of the daemon.
func bench(t *testing.T, flags ...string) (*cluster, *process, *daemon) {
	t.Helper()
	c := newCluster(t)
	c.bringTool()
	c.namespace("lab")
	agent, d := c.newAgent("lab", "dgx-station-a100"), c.newDaemon("lab", flags...)
	if !agent.start(offers) || !d.start(ready) {
		t.Fatal("agent and daemon do not start")
	}
	d.healthy()
	return c, agent, d
}

// healthy waits until the daemon reports all GPUs of the node without a fault.
func (d *daemon) healthy() {
	d.t.Helper()
	(&cluster{t: d.t}).until("four GPUs without a fault", func() bool {
		gpus, err := d.api.GPUs(d.t.Context())
		return err == nil && len(gpus) == 4 && !slices.ContainsFunc(gpus, func(g api.GPU) bool { return g.Fault != "" })
	})
}

// runOnly waits until exactly these pods run. A pod that is made again has another uid.
func (c *cluster) runOnly(when string, pods []string) {
	c.t.Helper()
	c.until(fmt.Sprintf("%s the pods %v run and no others", when, pods), func() bool { return slices.Equal(uids(c.tasks("lab")), pods) })
}

// TestKills kills each part of the cluster and of carma with kill -9 while two tasks run, and
// restarts it. Both tasks continue in their first attempt, a task that is submitted afterwards
// runs, and in the end no pod or claim is left. Daemon and agent together use less than
// mostMemory. With -short, it kills only the most important parts.
func TestKills(t *testing.T) {
	c, agent, d := bench(t)
	for _, name := range []string{"one", "two"} {
		d.submit(block(name, "kills-"+name))
		d.runs(name)
	}
	before := uids(c.tasks("lab"))
	parts := []string{"etcd", "apiserver", "scheduler", "controllers", "containerd", "kubelet", "agent", "daemon"}
	if testing.Short() {
		parts = []string{"apiserver", "kubelet", "daemon"}
	}
	for _, part := range parts {
		switch part {
		case "agent":
			agent.end(syscall.SIGKILL)
			agent.start(offers)
		case "daemon":
			d.end(syscall.SIGKILL)
			d.start(ready)
		default:
			c.kill(part)
			c.up()
		}
		d.healthy()
		proof := block("after-"+part, "kills-after-"+part)
		proof.Command = []string{"exit:0"}
		d.submit(proof)
		d.ends(proof.Name, 1)
		for _, name := range []string{"one", "two"} {
			if task := d.runs(name); len(task.Attempts) != 1 {
				t.Errorf("after %s was killed, %s is in attempt %d", part, name, len(task.Attempts))
			}
		}
		c.runOnly("after "+part+" was killed", before)
	}
	small(t, agent, d.process)
	for _, name := range []string{"one", "two"} {
		c.finish("kills-" + name)
		d.ends(name, 1)
	}
	c.empty("lab")
}

// TestTwoDaemons checks that only one of two daemons of a namespace works. If that daemon is
// killed, the other takes the Lease. If the other has its own journal, it does not change the
// tasks. They continue, and the first daemon has them again as soon as it works again. If the
// other has the same journal, it takes the tasks over.
func TestTwoDaemons(t *testing.T) {
	c, _, first := bench(t)
	first.submit(block("one", "two-daemons"))
	first.runs("one")
	before := uids(c.tasks("lab"))
	const waits = "this one waits for its Lease"

	second := c.newDaemon("lab")
	second.start(waits)
	first.end(syscall.SIGKILL)
	if !second.says(ready) {
		t.Fatal("the second daemon ends")
	}
	second.healthy()
	c.runOnly("with another daemon", before)
	if tasks, err := second.api.Tasks(t.Context(), api.ListOptions{All: true}); err != nil || len(tasks) != 0 {
		t.Errorf("a daemon with a journal of its own has the tasks %v, %v", tasks, err)
	}
	first.start(waits)
	second.end(syscall.SIGTERM)
	if !first.says(ready) {
		t.Fatal("the first daemon ends")
	}
	if task := first.runs("one"); len(task.Attempts) != 1 {
		t.Errorf("attempts %+v", task.Attempts)
	}
	c.runOnly("with the first daemon again", before)

	// The volume with the journal moves to another machine, where the daemon has another name.
	first.end(syscall.SIGKILL)
	third := c.newDaemon("lab")
	if err := os.Rename(filepath.Join(first.root, "d"), filepath.Join(third.root, "d")); err != nil {
		t.Fatal(err)
	}
	third.start(waits)
	if !third.says(ready) {
		t.Fatal("the third daemon ends")
	}
	third.runs("one")
	c.runOnly("with the journal elsewhere", before)
	c.finish("two-daemons")
	third.ends("one", 1)
	c.empty("lab")
}

// TestNodeDeleted: the node of a running task is deleted. The attempt ends without a fault of
// the task, and the task runs again when the node is back.
func TestNodeDeleted(t *testing.T) {
	c, _, d := bench(t)
	d.submit(block("one", "node-deleted"))
	d.runs("one")
	c.must(http.MethodDelete, "/api/v1/nodes/localhost", "")
	d.sees("one", "its attempt ends", func(t api.Task) bool { return t.Attempts[0].Outcome != "" })
	c.kill("kubelet") // the kubelet registers its node only when it starts
	c.up()
	d.healthy()
	task := d.sees("one", "it runs again", func(t api.Task) bool { return len(t.Attempts) == 2 && t.Phase == "running" })
	if a := task.Attempts[0]; a.Outcome != "infrastructure" || !a.Blameless {
		t.Errorf("the first attempt: %+v", a)
	}
	c.until("one process of the task is left", func() bool { return len(all("out:node-deleted")) == 1 })
	c.finish("node-deleted")
	d.ends("one", 2)
	c.empty("lab")
}

// TestNamespaceDeleted: the namespace of a running task is deleted. The attempt ends without a
// fault of the task, the namespace is removed, and the task either reports that reason or
// waits. When a namespace of that name exists again, tasks run.
func TestNamespaceDeleted(t *testing.T) {
	c, _, d := bench(t)
	one := block("one", "namespace-deleted")
	one.Command = []string{"block:143"} // like a program that does not expect the stop signal
	d.submit(one)
	d.runs("one")
	c.must(http.MethodDelete, "/api/v1/namespaces/lab", "")
	task := d.sees("one", "its attempt ends", func(t api.Task) bool { return t.Attempts[0].Outcome != "" })
	if a := task.Attempts[0]; a.Outcome != "infrastructure" || !a.Blameless {
		t.Errorf("the first attempt: %+v", a)
	}
	c.gone("lab")
	// Without its namespace the daemon has no Lease either, and may be waiting for the Lease.
	task = d.sees("one", "it is told", func(t api.Task) bool { return t.Phase == "queued" || t.Phase == "recovering" || t.Finished() })
	if task.Finished() && (task.Phase != "failed" || !strings.Contains(task.Reason, "namespace lab")) {
		t.Errorf("it has %s: %s", task.Phase, task.Reason)
	}
	c.namespace("lab")
	d.submit(block("two", "namespace-again"))
	d.runs("two")
	c.finish("namespace-again")
	d.ends("two", 1)
	if !task.Finished() {
		d.runs("one")
		if _, err := d.api.Stop(t.Context(), "one", api.StopRequest{}); err != nil {
			t.Fatal(err)
		}
		d.sees("one", "its end", func(t api.Task) bool { return t.Finished() })
	}
	c.empty("lab")
}
