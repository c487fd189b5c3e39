package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"carma/containers/kubernetes"
	"carma/containers/kubernetes/cluster"
	"carma/runner/gpu"
)

// wall is a fake of the cluster's requests that an agent makes.
type wall struct {
	pods  []kubernetes.NodePod
	err   error
	asks  int
	text  string
	tells int
	asked []string
	done  []string
}

func (w *wall) PodsOn(_ context.Context, node string) ([]kubernetes.NodePod, error) {
	w.asks++
	if node != "n1" {
		return nil, errors.New("another node: " + node)
	}
	return w.pods, w.err
}

func (w *wall) Told(context.Context, string) (string, error) { return w.text, nil }

func (w *wall) Tell(_ context.Context, _, text string, done []string) ([]string, error) {
	w.text, w.tells, w.done = text, w.tells+1, append(w.done, done...)
	w.asked = slices.DeleteFunc(w.asked, func(uuid string) bool { return slices.Contains(done, uuid) })
	return w.asked, nil
}

// card is a GPU whose state a test changes.
type card struct {
	gpu.Sample
	remembered, forgiven []string
}

func (c *card) Name() string                               { return "card" }
func (c *card) Close() error                               { return nil }
func (c *card) GPUs(context.Context) ([]gpu.Device, error) { return nil, nil }
func (c *card) Forgive(_ context.Context, uuid string) error {
	c.forgiven = append(c.forgiven, uuid)
	return nil
}
func (c *card) Remember(_ context.Context, uuid, fault string, told bool) error {
	c.remembered = append(c.remembered, fmt.Sprint(uuid, " ", fault, " ", told))
	return nil
}

// source reads the card.
type source struct{ *card }

func (s source) Sample(context.Context) ([]gpu.Sample, error) {
	one := s.card.Sample
	one.Processes = slices.Clone(one.Processes)
	return []gpu.Sample{one}, nil
}

const (
	podA = "aaaaaaaa-0000-0000-0000-000000000000"
	podB = "bbbbbbbb-0000-0000-0000-000000000000"
	podC = "cccccccc-0000-0000-0000-000000000000"
)

// processes makes a /proc in which each process is in the pod with the given uid, or in no pod
// if it is empty.
func processes(t *testing.T, in map[int]string) string {
	t.Helper()
	root := t.TempDir()
	for pid, pod := range in {
		dir := filepath.Join(root, "proc", strconv.Itoa(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := "/user.slice"
		if pod != "" {
			path = "/kubepods/besteffort/pod" + pod + "/" + "x"
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::"+path+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestAttribute checks that a process belongs to the task of its pod, even if its environment
// names another task. The cluster is asked only when a pod is unknown.
func TestAttribute(t *testing.T) {
	w := &wall{pods: []kubernetes.NodePod{{UID: podA, Task: 17, Attempt: 2}}}
	o := newOwners(w, "n1")
	o.root = processes(t, map[int]string{10: podA, 11: podA, 12: podB, 13: ""})
	now := time.Unix(1000, 0)
	o.now = func() time.Time { return now }
	look := func() (out []string) {
		t.Helper()
		samples := []gpu.Sample{{Processes: []gpu.Process{{PID: 10}, {PID: 11, Task: 99}, {PID: 12, Task: 99}}}, {Processes: []gpu.Process{{PID: 13, Task: 5, Attempt: 1}, {PID: 14}, {Task: 6, Attempt: 3}}}}
		if err := o.attribute(t.Context(), samples); err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			for _, p := range s.Processes {
				out = append(out, fmt.Sprintf("%d/%d", p.Task, p.Attempt))
			}
		}
		return out
	}
	want := []string{"17/2", "17/2", "0/0", "5/1", "0/0", "6/3"}
	for range 3 {
		if got := look(); !slices.Equal(got, want) || w.asks != 1 {
			t.Fatalf("%v after %d questions, want %v after 1", got, w.asks, want)
		}
	}
	// The cluster is asked again about a foreign pod, because its answer may have been old.
	now = now.Add(foreignFor)
	w.pods = []kubernetes.NodePod{{UID: podB, Task: 18, Attempt: 1}} // the first pod was removed while its process ran
	want[2] = "18/1"
	if got := look(); !slices.Equal(got, want) || w.asks != 2 {
		t.Errorf("%v after %d questions, want %v", got, w.asks, want)
	}
	// A process of an unknown owner belongs to no task.
	o.root = processes(t, map[int]string{10: podC})
	w.err = errors.New("away")
	if err := o.attribute(t.Context(), []gpu.Sample{{Processes: []gpu.Process{{PID: 10}}}}); err == nil {
		t.Error("a pod is foreign because the cluster does not answer")
	}
}

// TestTeller checks that changed memory is reported at once, changed activity later, and
// unchanged samples not again. The agent keeps a fault from this boot, and clears it at the
// daemon's request.
func TestTeller(t *testing.T) {
	before, err := cluster.Report{Boot: "b1", GPUs: []gpu.Sample{{UUID: "GPU-a", Fault: "Xid 79", Lasts: true, Told: true}, {UUID: "GPU-b", Fault: "hot"}}}.Text()
	if err != nil {
		t.Fatal(err)
	}
	c := &card{Sample: gpu.Sample{UUID: "GPU-a"}}
	w := &wall{text: before}
	agent := newTeller(w, "n1", source{c}, zerolog.Nop())
	agent.boot = "b2"
	if err := agent.remember(t.Context()); err != nil || len(c.remembered) != 0 {
		t.Errorf("after another boot %v, %v", c.remembered, err)
	}
	agent.boot = "b1"
	if err := agent.remember(t.Context()); err != nil || !slices.Equal(c.remembered, []string{"GPU-a Xid 79 true"}) {
		t.Errorf("remembered %v, %v", c.remembered, err)
	}
	look := func(tells int) {
		t.Helper()
		if err := agent.look(t.Context()); err != nil || w.tells != tells {
			t.Fatalf("%d tellings, want %d, %v", w.tells, tells, err)
		}
	}
	look(1)
	look(1)
	c.Used = 1 << 30
	look(2)
	c.SMACT = 0.5
	look(2)
	agent.at = agent.at.Add(-busyEvery)
	look(3)
	agent.at = agent.at.Add(-tellEvery)
	w.asked = []string{"GPU-a"}
	look(4)
	if !slices.Equal(c.forgiven, []string{"GPU-a"}) || len(w.done) != 0 {
		t.Errorf("forgiven %v, said %v", c.forgiven, w.done)
	}
	look(5)
	look(5)
	if len(c.forgiven) != 1 || !slices.Equal(w.done, []string{"GPU-a"}) {
		t.Errorf("forgiven %v, said %v", c.forgiven, w.done)
	}
}
