//go:build e2e

package test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// brokenRuntime is a runc that fails with the text in a file, while that file
// exists. It writes the text where runc writes its errors, so that the engine
// reads it.
const brokenRuntime = `#!/bin/sh
text=$(cat "$0.fails" 2>/dev/null) || exec RUNC "$@"
[ -n "$text" ] || exec RUNC "$@"
log= last= create=
for arg in "$@"; do
	[ "$last" = --log ] && log=$arg
	[ "$arg" = create ] && create=yes
	last=$arg
done
[ -n "$create" ] || exec RUNC "$@"
printf '{"level":"error","msg":"%s","time":"2026-01-01T00:00:00Z"}\n' "$text" >> "$log"
echo "$text" >&2
exit 1
`

// TestSickRuntime (R6) breaks a real engine: its runtime is missing, or fails as without
// control groups or without a GPU's device node, or its control groups are really unmounted.
// Tasks must wait and lose no attempt. Launching must pause, except for probe launches at
// growing intervals. The commands must show cause and remedy, and tasks must run again without
// an action by anybody.
func TestSickRuntime(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, name := range []string{"runc", "unshare", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	runc, _ := exec.LookPath("runc")
	e := newDockerd(t)
	wrapper := filepath.Join(e.root, "runc-wrapper")
	write := func(path, text string) func() {
		return func() {
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(args ...string) func() {
		return func() {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", args, err, out)
			}
		}
	}
	write(wrapper, strings.ReplaceAll(brokenRuntime, "RUNC", runc))()
	e.before = []string{"unshare", "-m"} // so that its control groups can be unmounted
	e.args = []string{"--add-runtime", "wrapped=" + wrapper, "--default-runtime", "wrapped"}
	e.start()
	e.copyImage(tool)
	inside := []string{"nsenter", "-m", "-t", strconv.Itoa(e.cmd.Process.Pid)}
	fails := func(text string) func() { return write(wrapper+".fails", text) }
	for _, c := range []struct {
		name          string
		sicken, mend  func()
		cause, remedy string
	}{
		{"runtime gone", run("mv", wrapper, wrapper+".away"), run("mv", wrapper+".away", wrapper), "is missing or broken", "install it again"},
		{
			"no control groups mounted", fails("runc create failed: no cgroup mount found in mountinfo"), fails(""),
			"the control groups of this machine cannot be used", "mount them",
		},
		{
			"control groups really gone", run(slices.Concat(inside, []string{"mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"})...),
			run(slices.Concat(inside, []string{"umount", "/sys/fs/cgroup"})...), "the control groups of this machine cannot be used", "mount them",
		},
		{
			"no device node", fails("runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: mount error: stat failed: /dev/nvidia0: no such file or directory"),
			fails(""), "a GPU's device node is missing", "nvidia-smi makes it again",
		},
		{ // the tasks are of one user: the canary is the evidence
			"unknown", fails("runc create failed: a text that no row of the table has"), fails(""),
			"carma's own test container does not start: a text that no row of the table has", "look at the engine's log",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, "--speed", "1", "--backoff", "1s", "--warm-up", "0s")
			s.useEngine(e)
			s.start()
			s.succeeded(s.submit("--mem", "1G", tool, "out:before"))
			c.sicken()
			healthy := false
			defer func() {
				if !healthy {
					c.mend()
				}
			}()
			var refs []string
			for range 5 {
				refs = append(refs, s.submit("--gpus", "4", "--mem", "1G", tool, "out:after"))
			}
			s.pauses(c.cause)
			for _, said := range []string{s.carma("ps").err, s.ok("why", refs[4]), s.carma("info").out, s.readyz()} {
				if !strings.Contains(said, c.cause) || !strings.Contains(said, c.remedy) {
					t.Errorf("it does not say %q and %q: %s", c.cause, c.remedy, said)
				}
			}
			if r := s.carma("doctor"); r.code != 1 || !strings.Contains(r.out, c.cause) {
				t.Errorf("doctor: %v", r)
			}
			for _, ref := range refs {
				if task := s.inspect(ref); task.Finished() {
					t.Errorf("task %s has %s: %s", ref, task.Phase, task.Reason)
				}
			}
			c.mend()
			healthy = true
			for _, task := range s.succeeded(refs...) {
				for _, at := range task.Attempts[:len(task.Attempts)-1] {
					if !at.Blameless || at.Outcome != "infrastructure" {
						t.Errorf("task %d lost an attempt: %+v", task.ID, at)
					}
				}
			}
			if said := s.readyz(); said != "ok" {
				t.Errorf("readyz afterwards: %s", said)
			}
			if v := s.verified(); v.Succeeded != 6 || v.Failed != 0 {
				t.Errorf("the journal has %+v", v)
			}
		})
	}
}

// pauses waits until launching pauses for a cause and three probe launches have failed. Each
// must delay the next one for twice as long as the last: 1 s, 2 s and 4 s with a back-off of 1
// s, plus the time of a launch.
func (s *server) pauses(cause string) {
	s.t.Helper()
	var tests []time.Time
	eventually(s.t, "three test launches fail", func() bool {
		info, err := s.api.Info(s.t.Context())
		if err != nil {
			return false
		}
		i := slices.IndexFunc(info.Trouble, func(x api.Trouble) bool { return strings.Contains(x.Cause, cause) && !x.NextTest.IsZero() })
		if i < 0 {
			return false
		}
		next := info.Trouble[i].NextTest
		if next.Sub(info.Now) > time.Minute {
			return false // a probe launch is in progress
		}
		if len(tests) == 0 || !next.Equal(tests[len(tests)-1]) {
			tests = append(tests, next)
		}
		return len(tests) > 3
	})
	for i := 1; i < len(tests); i++ {
		if least, is := time.Second<<(i-1), tests[i].Sub(tests[i-1]); is < least {
			s.t.Errorf("the time between two test launches is %s, at least %s was expected: %v", is, least, tests)
		}
	}
}

// readyz returns the daemon's answer to /readyz, in one line.
func (s *server) readyz() string {
	s.t.Helper()
	cli := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}}
	resp, err := cli.Get("http://carma/readyz")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return strings.TrimSpace(string(text))
}
