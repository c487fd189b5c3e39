//go:build e2e

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/runner/api"
)

// TestManyTasks submits an array with a limit of four, a sweep of four by four,
// and a diamond that follows both. The daemon is killed and started meanwhile.
// Every task must run once, with its own values, and in order. Package runner
// tests an array of 1,000 on the fake engine.
func TestManyTasks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	ids := split(s.ok("run", "-d", "--group", "array", "--array", "1-24%4", "--mem", "1G", tool, "env:CARMA_ARRAY_INDEX", "out:{index}"))
	if len(ids) != 24 {
		t.Fatalf("an array of 24 has %d tasks", len(ids))
	}
	sweep := split(s.ok("run", "-d", "--group", "sweep", "--sweep", "lr=1,2,3,4", "--sweep", "bs=8,16,32,64", "--mem", "1G", tool, "env:CARMA_SWEEP_LR", "out:{lr} {bs}"))
	if len(sweep) != 16 {
		t.Fatalf("a sweep of four by four has %d tasks", len(sweep))
	}
	file := filepath.Join(s.root, "diamond.yaml")
	text := fmt.Sprintf("group: diamond\ndefaults: {image: %q, mem: 1G}\ntasks:\n"+
		"  join: {after: [left, right], command: [out:join]}\n  left: {after: top, command: [out:left]}\n"+
		"  right: {after: top, command: [out:right]}\n  top: {after: [%s], command: [out:top]}\n", tool, strings.Join(append(slices.Clone(ids), sweep...), ", "))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	diamond := split(s.ok("run", "-d", "-f", file))
	if out := s.ok("why", diamond[0]); !strings.Contains(out, "it waits for task ") || !strings.Contains(out, "is held") {
		t.Errorf("carma why:\n%s", out)
	}
	for _, ref := range []string{ids[3], ids[11]} {
		s.until(ref, "its start", func(t *api.Task) bool { return t.Phase == "running" || t.Finished() })
		s.kill()
		s.start()
	}
	if r := s.carma("wait", "--group", "diamond"); r.code != 0 || r.out != "0\n0\n0\n0\n" {
		t.Fatal(r)
	}
	tasks := s.succeeded(slices.Concat(ids, sweep, diamond)...)
	for _, task := range tasks {
		if len(task.Attempts) != 1 {
			t.Errorf("task %s ran %d times", task.Name, len(task.Attempts))
		}
	}
	for i, ref := range ids {
		if out, _ := s.lines(ref); !slices.Equal(out, []string{fmt.Sprintf("CARMA_ARRAY_INDEX=%d", i+1), fmt.Sprint(i + 1)}) {
			t.Errorf("element %d printed %q", i+1, out)
		}
	}
	for i, ref := range sweep {
		lr, bs := i/4+1, 8<<(i%4)
		if out, _ := s.lines(ref); !slices.Equal(out, []string{fmt.Sprintf("CARMA_SWEEP_LR=%d", lr), fmt.Sprintf("%d %d", lr, bs)}) {
			t.Errorf("the %d. of the sweep printed %q", i+1, out)
		}
	}
	checkSequence(t, tasks)
	if v := s.verified(); v.Launches != 44 || v.Succeeded != 44 {
		t.Errorf("the journal has %+v, want 44 launches and successes", v)
	}
	s.checkContainers()
}

// checkSequence checks that at most four tasks of the array ran at a time, and
// that the diamond ran in order, after all others.
func checkSequence(t *testing.T, tasks []api.Task) {
	t.Helper()
	array, rest, diamond := tasks[:24], tasks[:40], tasks[40:]
	for _, a := range array {
		n := 0
		for _, b := range array {
			if !b.Attempts[0].Launched.After(a.Attempts[0].Launched) && b.Ended.After(a.Attempts[0].Launched) {
				n++
			}
		}
		if n > 4 {
			t.Errorf("%d of the array ran when %s was launched", n, a.Name)
		}
	}
	top, left, right, join := diamond[0], diamond[1], diamond[2], diamond[3]
	for _, before := range rest {
		if before.Ended.After(top.Attempts[0].Launched) {
			t.Errorf("%s was launched before %s had ended", top.Name, before.Name)
		}
	}
	for _, p := range [][2]api.Task{{top, left}, {top, right}, {left, join}, {right, join}} {
		if p[0].Ended.After(p[1].Attempts[0].Launched) {
			t.Errorf("%s was launched before %s had ended", p[1].Name, p[0].Name)
		}
	}
}

// TestSeveralAttached: output lines of several tasks begin with their names, the
// exit code is the highest, and the first Ctrl-C stops all.
func TestSeveralAttached(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	r := s.carma("run", "--group", "codes", "--sweep", "code=0,3,7", "--mem", "1G", tool, "out:ends with {code}", "exit:{code}")
	if r.code != 7 || !strings.Contains(r.out, "codes-2 | ends with 3\n") || !strings.Contains(r.err, "carma: 1 of 3 tasks succeeded") {
		t.Error(r)
	}
	c := s.begin(nil, "run", "--group", "long", "--array", "1-3%2", "--mem", "1G", tool, "out:ready", "block:5")
	c.await(&c.out, "long-2 | ready")
	c.await(&c.out, "long-1 | ready")
	c.signal(os.Interrupt)
	if r := c.wait(); r.code != 5 || strings.Contains(r.out, "long-3 | ready") || !strings.Contains(r.err, "stopping group long") {
		t.Error(r)
	}
	if out := s.ok("ps", "-q", "--group", "long"); out != "" {
		t.Errorf("still there: %s", out)
	}
}
