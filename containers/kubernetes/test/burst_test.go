//go:build kubernetes

package test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers/kubernetes/test/fleet"
	"carma/runner/api"
)

var (
	burstNodes  = flag.Int("burst.nodes", 1250, "nodes of TestBurst, of 8 GPUs each")
	burstTasks  = flag.Int("burst.tasks", 1000, "tasks of TestBurst")
	burstSteady = flag.Duration("burst.steady", time.Minute, "for how long TestBurst looks at the daemon when all tasks run; 0: not")
	burstTell   = flag.Duration("burst.tell", 10*time.Second, "how often the agent of each node tells something; 0: once")
)

// TestBurst submits many tasks at once to a daemon on a cluster of fake nodes. It prints the
// times from submission to carma's decision, to the scheduler's allocation, and to the start.
// make kubernetes-scale runs it. It has no time limit, but each task must be launched once, and
// no GPU allocated twice.
func TestBurst(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	t.Setenv("KUBERNETES_NODE_GRACE", "24h") // no kubelet reports that a node is alive
	c := newCluster(t, "--no-node")
	c.namespace("carma")
	f := fleet.New(t, c.kubeconfig)
	f.Join(*burstNodes)
	f.Agents(t, c.kubeconfig, "carma", *burstNodes, *burstTell)
	d := c.newDaemon("carma", "--policy", "carma")
	if !d.start(ready) {
		t.Fatal(d.log.String())
	}
	c.until("the daemon sees all GPUs", func() bool {
		gpus, err := d.api.GPUs(t.Context())
		return err == nil && len(gpus) == 8**burstNodes && !slices.ContainsFunc(gpus, func(g api.GPU) bool { return g.Fault != "" })
	})
	allocated := f.Allocations(t)
	f.Kubelets(t)
	time.Sleep(5 * time.Second) // until the cluster's start has finished

	cpu, daemonBefore := f.CPU(), fleet.CPUOf(d.cmd.Process.Pid)
	began := time.Now()
	var all sync.WaitGroup
	for part := range 16 {
		all.Go(func() {
			for i := part; i < *burstTasks; i += 16 {
				if _, err := d.api.Submit(t.Context(), api.Submit{Name: fmt.Sprintf("burst-%d", i), Image: "none", Mem: 10 << 30}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	submitted := time.Since(began)
	at := allocated(*burstTasks)
	if len(at) != *burstTasks {
		t.Fatalf("%d of %d claims were allocated", len(at), *burstTasks)
	}
	last := slices.MaxFunc(slices.Collect(maps.Values(at)), time.Time.Compare)
	load, _ := os.ReadFile("/proc/loadavg")
	spent := f.CPUSince(cpu)
	var tasks []api.Task
	c.until("all run", func() bool {
		var err error
		tasks, err = d.api.Tasks(t.Context(), api.ListOptions{Phase: "running"})
		return err == nil && len(tasks) == *burstTasks
	})
	t.Logf("%d tasks were submitted in %.1f s; the last was allocated after %.1f s: %.1f a second", *burstTasks, submitted.Seconds(), last.Sub(began).Seconds(), float64(*burstTasks)/last.Sub(began).Seconds())
	tellTimes(t, tasks, at)
	t.Logf("CPU s of the control plane: %s; of the daemon %.1f; of this process %.1f; load %s", spent, fleet.CPUOf(d.cmd.Process.Pid)-daemonBefore, f.Own(cpu), strings.TrimSpace(string(load)))
	f.NotOver(t, 80<<30)

	d.steady(*burstSteady)
}

// tellTimes prints the times of tasks that each had one attempt. allocated contains the time at
// which the claim of each attempt was allocated.
func tellTimes(t *testing.T, tasks []api.Task, allocated map[string]time.Time) {
	t.Helper()
	var decided, waits, whole, starts []time.Duration
	for _, task := range tasks {
		if len(task.Attempts) != 1 {
			t.Errorf("task %s has %d attempts", task.Name, len(task.Attempts))
			continue
		}
		a := task.Attempts[0]
		when, ok := allocated[a.Container]
		if !ok {
			t.Errorf("%s was not allocated", a.Container)
		}
		decided = append(decided, a.Launched.Sub(task.Submitted))
		waits = append(waits, when.Sub(a.Launched))
		whole = append(whole, when.Sub(task.Submitted))
		starts = append(starts, a.Started.Sub(task.Submitted))
	}
	for _, row := range []struct {
		what  string
		times []time.Duration
	}{{"submitted to decided", decided}, {"decided to allocated", waits}, {"submitted to allocated", whole}, {"submitted to started", starts}} {
		n := len(row.times)
		slices.Sort(row.times)
		t.Logf("%s: median %.2f s, p99 %.2f s, longest %.2f s", row.what, row.times[n/2].Seconds(), row.times[n*99/100].Seconds(), row.times[n-1].Seconds())
	}
}

// steady prints the daemon's CPU time and memory while only the activity of its tasks changes.
func (d *daemon) steady(span time.Duration) {
	if span <= 0 {
		return
	}
	before, stored := fleet.CPUOf(d.cmd.Process.Pid), sizeOf(d.t, d.root)
	time.Sleep(span)
	d.t.Logf("then, while all of them run: the daemon uses %.1f%% of a core, and its folder grows by %.1f MB a minute",
		100*(fleet.CPUOf(d.cmd.Process.Pid)-before)/span.Seconds(), float64(sizeOf(d.t, d.root)-stored)/1e6/span.Minutes())
}

// sizeOf sums the bytes of the files in a folder.
func sizeOf(t *testing.T, folder string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
