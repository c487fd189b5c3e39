package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers/kubernetes"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// stage is a fake cluster whose state a test changes.
type stage struct {
	is       kubernetes.Inventory
	err      error
	now      time.Time
	forgiven []string // node and GPU of each request
}

func (s *stage) Forgive(_ context.Context, node, uuid string) error {
	s.forgiven = append(s.forgiven, node+" "+uuid)
	return nil
}

func (s *stage) Inventory(context.Context) (kubernetes.Inventory, error) { return s.is, s.err }

func (s *stage) open(t *testing.T) *Source {
	t.Helper()
	source, err := open(t.Context(), s, func() time.Time { return s.now })
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func (s *stage) tell(t *testing.T, node string, count int64, samples ...gpu.Sample) {
	t.Helper()
	text, err := Report{GPUs: samples}.Text()
	if err != nil {
		t.Fatal(err)
	}
	s.is.Reports = slices.DeleteFunc(s.is.Reports, func(r kubernetes.Report) bool { return r.Node == node })
	s.is.Reports = append(s.is.Reports, kubernetes.Report{Node: node, Count: count, Text: text})
}

func simulatedGPU(uuid, node, device string) kubernetes.Device {
	return kubernetes.Device{UUID: uuid, Driver: kubernetes.SimulatedDriver, Pool: node, Device: device, Node: node, Model: "A100", Bytes: 80 << 30, Shared: true}
}

func two(t *testing.T) *stage {
	s := &stage{now: time.Unix(1000, 0)}
	s.is.Nodes = []kubernetes.Node{{Name: "n1", Boot: "b1"}, {Name: "n2", Boot: "b2"}}
	s.is.Devices = []kubernetes.Device{simulatedGPU("GPU-a", "n1", "gpu-0"), simulatedGPU("GPU-b", "n2", "gpu-0")}
	s.tell(t, "n1", 1)
	s.tell(t, "n2", 1)
	return s
}

// sample reads the source once and returns the sample of one GPU.
func sample(t *testing.T, s *Source, uuid string) gpu.Sample {
	t.Helper()
	all, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.UUID == uuid {
			return one
		}
	}
	t.Fatalf("no sample of %s in %+v", uuid, all)
	return gpu.Sample{}
}

// TestUse checks that a sample combines the agents' reports and the allocations of others.
func TestUse(t *testing.T) {
	st := two(t)
	s := st.open(t)
	st.tell(t, "n1", 2, gpu.Sample{UUID: "GPU-a", Used: 13 << 30, SMACT: 0.5, Processes: []gpu.Process{{PID: 7, Task: 3, Attempt: 2, Used: 10 << 30}, {PID: 8, Used: 3 << 30}}})
	claim := kubernetes.Claim{Namespace: "other", Name: "x", Driver: kubernetes.SimulatedDriver, Pool: "n1", Device: "gpu-0", Bytes: 20 << 30}
	mine, elsewhere := claim, claim
	mine.Ours, elsewhere.Pool = true, "n9"
	st.is.Claims = []kubernetes.Claim{claim, mine, elsewhere}
	got := sample(t, s, "GPU-a")
	var task, foreign units.Bytes
	for _, p := range got.Processes {
		switch {
		case p.PID != 0:
			t.Errorf("a number of a process of another machine: %+v", p)
		case p.Task == 3 && p.Attempt == 2:
			task += p.Used
		default:
			foreign += p.Used
		}
	}
	if task != 10<<30 || foreign != 20<<30 || got.Used != 30<<30 || got.SMACT != 0.5 || got.Fault != "" {
		t.Errorf("task %s, foreign %s, %+v", task, foreign, got)
	}
	// If more is used than allocated, the used memory counts.
	st.is.Claims[0].Bytes = 1 << 30
	if got := sample(t, s, "GPU-a"); got.Used != 13<<30 {
		t.Errorf("used %s", got.Used)
	}
	// A claim without sharing has all of the device.
	st.is.Claims[0].Bytes = -1
	if got := sample(t, s, "GPU-a"); got.Used != 80<<30+10<<30 {
		t.Errorf("used %s beside a claim of all", got.Used)
	}
}

// TestFaults checks that a GPU gets no tasks, with the reason, while its node takes no pods.
func TestFaults(t *testing.T) {
	for what, tc := range map[string]struct {
		breaks func(*stage)
		says   string
	}{
		"cordoned":      {func(s *stage) { s.is.Nodes[0].Closed = "its node n1 is cordoned" }, "its node n1 is cordoned"},
		"gone":          {func(s *stage) { s.is.Nodes = s.is.Nodes[1:] }, "its node n1 is not in the cluster any more"},
		"tainted":       {func(s *stage) { s.is.Devices[0].Taint = "xid:NoSchedule" }, "it has the taint xid:NoSchedule"},
		"agent gone":    {func(s *stage) { s.is.Reports = s.is.Reports[1:] }, "run carma agent on n1"},
		"agent silent":  {func(s *stage) { s.now = s.now.Add(silence + time.Second); s.is.Reports[1].Count = 5 }, "the agent of its node n1 tells nothing any more"},
		"agent unknown": {func(s *stage) { s.is.Reports[0].Text = "v2" }, "run carma agent on n1"},
	} {
		t.Run(what, func(t *testing.T) {
			st := two(t)
			s := st.open(t)
			if got := sample(t, s, "GPU-a"); got.Fault != "" {
				t.Fatalf("before: %q", got.Fault)
			}
			was := st.is
			was.Nodes, was.Devices, was.Reports = slices.Clone(was.Nodes), slices.Clone(was.Devices), slices.Clone(was.Reports)
			tc.breaks(st)
			if got := sample(t, s, "GPU-a"); !strings.Contains(got.Fault, tc.says) {
				t.Errorf("fault %q, want %q", got.Fault, tc.says)
			}
			if got := sample(t, s, "GPU-b"); got.Fault != "" {
				t.Errorf("the other GPU: %q", got.Fault)
			}
			st.is = was
			st.tell(t, "n1", 9)
			if got := sample(t, s, "GPU-a"); got.Fault != "" {
				t.Errorf("after: %q", got.Fault)
			}
		})
	}
}

// TestComing checks that GPUs are added and removed, keep their indexes, and that each change
// is signalled once.
func TestComing(t *testing.T) {
	st := two(t)
	s := st.open(t)
	list := func() (out []string) {
		t.Helper()
		if _, err := s.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		devices, _ := s.GPUs(t.Context())
		for _, d := range devices {
			out = append(out, d.Node+" "+d.UUID+" "+string(rune('0'+d.Index)))
		}
		return out
	}
	news := func() bool {
		select {
		case <-s.News():
			return true
		default:
			return false
		}
	}
	if got := list(); !slices.Equal(got, []string{"n1 GPU-a 0", "n2 GPU-b 1"}) || news() {
		t.Errorf("at first %v", got)
	}
	all := st.is.Devices
	st.is.Devices = all[1:]
	if got := list(); !slices.Equal(got, []string{"n2 GPU-b 1"}) || !news() || news() {
		t.Errorf("one gone: %v", got)
	}
	st.is.Nodes = append(st.is.Nodes, kubernetes.Node{Name: "m"})
	st.is.Devices = append([]kubernetes.Device{simulatedGPU("GPU-c", "m", "gpu-0")}, all...)
	if got := list(); !slices.Equal(got, []string{"n1 GPU-a 0", "n2 GPU-b 1", "m GPU-c 2"}) || !news() {
		t.Errorf("back, and one more: %v", got)
	}
	st.is.Nodes[0].Boot = "later"
	if list(); !news() {
		t.Error("a node's boot is news")
	}
	st.err = errors.New("away")
	if _, err := s.Sample(t.Context()); err == nil {
		t.Error("a cluster that does not answer")
	}
	if devices, _ := s.GPUs(t.Context()); len(devices) != 3 {
		t.Errorf("%d GPUs while the cluster does not answer", len(devices))
	}
	st.err, st.is.Devices = nil, nil
	if got := list(); len(got) != 0 || !news() {
		t.Errorf("none left: %v", got)
	}
}

// TestKinds checks how GPUs of different drivers are shared, two devices with one UUID, and a
// device without memory.
func TestKinds(t *testing.T) {
	st := two(t)
	card := kubernetes.Device{UUID: "GPU-d", Driver: "gpu.nvidia.com", Pool: "n1", Device: "gpu-0", Node: "n1", Bytes: 80 << 30}
	shares := card
	shares.UUID, shares.Shared = "GPU-e", true
	twin, bare := simulatedGPU("GPU-a", "n2", "gpu-7"), card
	bare.UUID, bare.Bytes = "GPU-f", 0
	st.is.Devices = append(st.is.Devices, card, shares, twin, bare)
	s := st.open(t)
	got := map[string]model.Sharing{}
	devices, _ := s.GPUs(t.Context())
	for _, d := range devices {
		if got[d.UUID] = d.Sharing; !d.Shares {
			t.Errorf("%s: how it is shared is not told", d.UUID)
		}
	}
	if len(got) != 4 || got["GPU-a"] != model.SharingMPS || got["GPU-d"] != model.SharingAlone || got["GPU-e"] != model.SharingTurns {
		t.Errorf("%v", got)
	}
	if one := sample(t, s, "GPU-e"); one.Fault != "" || one.Metrics != gpu.MetricsNone {
		t.Errorf("a card without an agent: %+v", one)
	}
	if notes := strings.Join(s.Notes(), "; "); !strings.Contains(notes, "nodes n1 and n2 both offer the GPU GPU-a") || !strings.Contains(notes, "GPU-f without its memory") {
		t.Errorf("notes %q", notes)
	}
}
