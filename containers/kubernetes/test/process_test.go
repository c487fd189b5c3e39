//go:build kubernetes

package test

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carma/runner/api"
)

// carma is the program under test; make builds it.
var carma = cmp.Or(os.Getenv("TEST_CARMA"), "../../../bin/carma")

// process is a program that the test starts, kills and restarts.
type process struct {
	t      *testing.T
	args   []string
	env    []string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	log    output
	life   int // position in the log at which the present run begins
}

// output stores the output of a process.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func newProcess(t *testing.T, args ...string) *process {
	p := &process{t: t, args: args}
	t.Cleanup(func() {
		p.end(syscall.SIGTERM)
		if t.Failed() {
			log := p.log.String()
			t.Logf("%s: the log ends with\n%s", args[1], log[max(0, len(log)-8<<10):])
		}
	})
	return p
}

// start starts the process and waits for words in its log. It returns false if the
// process has ended instead.
func (p *process) start(words string) bool {
	p.t.Helper()
	p.life = len(p.log.String())
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	exited, cmd := make(chan struct{}), p.cmd
	p.exited = exited
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	return p.says(words)
}

// says waits for words in the log since the last start. It returns false if the process
// has ended.
func (p *process) says(words string) bool {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(p.log.String()[p.life:], words); {
		select {
		case <-p.exited:
			return strings.Contains(p.log.String()[p.life:], words)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s does not say %q within %s", p.args[1], words, patience)
		}
	}
	return true
}

// end sends a signal and waits for the end, if it runs.
func (p *process) end(signal syscall.Signal) {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Errorf("%s does not end", p.args[1])
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	p.cmd = nil
}

// daemon is a carma daemon on this machine, outside of the cluster.
type daemon struct {
	*process
	api  *api.Client
	root string // folder of its data and its socket

	deaths int // deaths at a failpoint
}

const ready = "carma is ready"

// newDaemon prepares a daemon for a namespace of the cluster.
func (c *cluster) newDaemon(namespace string, flags ...string) *daemon {
	c.t.Helper()
	root, err := os.MkdirTemp("/tmp", "ck")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = os.RemoveAll(root) })
	d := &daemon{root: root}
	d.process = newProcess(c.t, append([]string{carma, "daemon", "--driver", "kubernetes", "--kubeconfig", c.kubeconfig, "--kubernetes-namespace", namespace,
		"--data-dir", filepath.Join(root, "d"), "--socket", filepath.Join(root, "s"), "--web", "off", "--log-format", "json",
		"--policy", "first-fit", "--warm-up", "0s", "--smact-cap", "0", "--backoff", "1s"}, flags...)...)
	d.api = api.NewClient(filepath.Join(root, "s"))
	return d
}

// newAgent prepares the agent of the node, with the GPUs of a server.
func (c *cluster) newAgent(namespace, server string) *process {
	return newProcess(c.t, carma, "agent", "--simulate", server, "--name", "localhost", "--speed", "600", "--kubeconfig", c.kubeconfig,
		"--kubernetes-namespace", namespace, "--kubelet", filepath.Join(c.state, "kubelet"), "--cdi", filepath.Join(c.state, "cdi"), "--dir", filepath.Join(c.state, "sim"))
}

const offers = "offers its GPUs"

// sees waits until a task satisfies a condition. The daemon may be down in the meantime.
func (d *daemon) sees(ref, what string, ok func(api.Task) bool) (last api.Task) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(d.t.Context(), 10*time.Second)
		task, err := d.api.Task(ctx, ref)
		cancel()
		if err == nil {
			if last = task; ok(task) {
				return task
			}
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("task %s: not within %s: %s; it is %s (%s), %v: %+v", ref, patience, what, last.Phase, last.Reason, err, last.Attempts)
		}
	}
}

// submit submits a task.
func (d *daemon) submit(s api.Submit) {
	d.t.Helper()
	if _, err := d.api.Submit(d.t.Context(), s); err != nil {
		d.t.Fatalf("submit %s: %v", s.Name, err)
	}
}

func (d *daemon) runs(ref string) api.Task {
	d.t.Helper()
	return d.sees(ref, "it runs", func(t api.Task) bool { return t.Phase == "running" })
}

// ends waits until a task succeeds, in this number of attempts.
func (d *daemon) ends(ref string, attempts int) api.Task {
	d.t.Helper()
	t := d.sees(ref, "its end", func(t api.Task) bool { return t.Finished() })
	if t.Phase != "succeeded" || len(t.Attempts) != attempts {
		d.t.Errorf("task %s has %s (%s) in %d attempts, want success in %d: %+v", ref, t.Phase, t.Reason, len(t.Attempts), attempts, t.Attempts)
	}
	return t
}
