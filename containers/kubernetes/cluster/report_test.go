package cluster

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/containers/kubernetes"
	"carma/runner/gpu"
)

// TestReport checks that a report contains all of a sample, and that processes of one attempt
// are summed.
func TestReport(t *testing.T) {
	full := gpu.Sample{
		UUID: "GPU-a", Used: 40 << 30, SMACT: 0.5, SMOCC: 0.25, DRAMA: 0.125, Metrics: gpu.MetricsGPM, Coarse: true, TemperatureC: 61, ECCErrors: 3,
		PowerW: 412.5, EnergyJ: 1000.25, CounterJ: 2000, Fault: "Xid 79", Lasts: true, Told: true, Warnings: []string{"slow"}, ClientsTold: true,
		Processes: []gpu.Process{
			{PID: 1, Task: 7, Attempt: 2, Used: 10, Peak: 12, Active: 0.5, Timed: true, Client: true},
			{PID: 2, Used: 5},
			{PID: 3, Task: 7, Attempt: 2, Used: 20, Active: 0.75, Timed: true, Client: true},
			{PID: 4, Task: 7, Attempt: 1, Used: 1},
			{PID: 5, Used: 6, Peak: 9, Client: true},
		},
	}
	want := full
	want.Processes = []gpu.Process{{Task: 7, Attempt: 2, Used: 30, Peak: 32, Active: 1, Timed: true, Client: true}, {Used: 11, Peak: 14, Client: true}, {Task: 7, Attempt: 1, Used: 1}}
	text, err := Report{Boot: "b1", GPUs: []gpu.Sample{full, {UUID: "GPU-b"}}}.Text()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(text)
	if err != nil || got.Boot != "b1" || len(got.GPUs) != 2 || !reflect.DeepEqual(got.GPUs[0], want) || !reflect.DeepEqual(got.GPUs[1], gpu.Sample{UUID: "GPU-b"}) {
		t.Errorf("%+v, %v", got, err)
	}
	// A new field of a sample must be reported as well.
	for i, v := 0, reflect.ValueOf(full); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("the field %s of a sample is not in this test", v.Type().Field(i).Name)
		}
	}
}

// TestReportSize: the cluster takes no annotation over 256 KiB.
func TestReportSize(t *testing.T) {
	var r Report
	for range 16 {
		s := gpu.Sample{UUID: "GPU-00000000-1111-2222-3333-444444444444", Used: 80<<30 - 1, SMACT: 0.123456, SMOCC: 0.123456, DRAMA: 0.123456, Metrics: gpu.MetricsGPM, PowerW: 612.345678, EnergyJ: 123456789.123456, CounterJ: 123456789.123456}
		for i := range 500 {
			s.Processes = append(s.Processes, gpu.Process{PID: 4_000_000 + i, Task: 1_000_000_001, Attempt: i % 20, Used: 123456789012, Peak: 123456789013, Active: 0.123456, Timed: true})
			if i%2 == 0 {
				s.Processes[i].Task, s.Processes[i].Attempt = 0, 0
			}
		}
		r.GPUs = append(r.GPUs, s)
	}
	text, err := r.Text()
	if err != nil || len(text) > 32<<10 {
		t.Errorf("%d bytes for 16 GPUs with 500 processes each, %v", len(text), err)
	}
	t.Logf("%d bytes", len(text))
}

// TestCards checks that a GPU of NVIDIA's driver gets no tasks if its agent has stopped
// reporting, like a GPU of this machine that cannot be read. A GPU that never had an agent gets
// tasks, because the cluster still allocates its memory.
func TestCards(t *testing.T) {
	st := two(t)
	st.is.Devices[0].Driver = "gpu.nvidia.com"
	s := st.open(t)
	broken := gpu.Sample{UUID: "GPU-a", Used: 1 << 30, Fault: "it has fallen off the bus (Xid 79)", Lasts: true}
	st.tell(t, "n1", 2, broken)
	if got := sample(t, s, "GPU-a"); got.Fault != broken.Fault || !got.Lasts {
		t.Errorf("a broken card: %+v", got)
	}
	st.tell(t, "n1", 3, gpu.Sample{UUID: "GPU-a", Used: 1 << 30})
	if got := sample(t, s, "GPU-a"); got.Fault != "" || got.Used != 1<<30 {
		t.Errorf("a card that is well: %+v", got)
	}
	st.now = st.now.Add(silence + time.Second)
	if got := sample(t, s, "GPU-a"); got.Fault == "" {
		t.Error("a card whose agent is silent has no fault")
	}
	st.is.Reports = slices.DeleteFunc(st.is.Reports, func(r kubernetes.Report) bool { return r.Node == "n1" })
	if got := sample(t, s, "GPU-a"); got.Fault != "" || got.Metrics != gpu.MetricsNone {
		t.Errorf("a card without an agent: %+v", got)
	}
	if err := s.Forgive(t.Context(), "GPU-b"); err != nil || !slices.Equal(st.forgiven, []string{"n2 GPU-b"}) {
		t.Errorf("forgiven %v, %v", st.forgiven, err)
	}
	if err := s.Forgive(t.Context(), "GPU-z"); err != nil || len(st.forgiven) != 1 {
		t.Errorf("a GPU that is not there: %v, %v", st.forgiven, err)
	}
}

// TestCatchUp checks that CatchUp waits until the agent has reported after end, which is
// rounded down to seconds. It does not wait for GPUs without an agent.
func TestCatchUp(t *testing.T) {
	st := two(t)
	s := st.open(t)
	end := time.Unix(2000, 0)
	for what, tc := range map[string]struct {
		at     time.Time
		behind bool
	}{
		"before":             {end.Add(-time.Second), true},
		"in the same second": {end.Add(900 * time.Millisecond), true},
		"after":              {end.Add(time.Second), false},
	} {
		st.tell(t, "n1", tc.at.UnixMicro(), gpu.Sample{UUID: "GPU-a"})
		ctx, cancel := context.WithCancel(t.Context())
		if tc.behind {
			cancel() // CatchUp checks once
		}
		s.CatchUp(ctx, []string{"GPU-a"}, end)
		cancel()
		if got := s.behind([]string{"GPU-a"}, end.Add(time.Second).UnixMicro()); got != tc.behind {
			t.Errorf("%s: behind %v", what, got)
		}
	}
	s.CatchUp(t.Context(), []string{"GPU-z"}, end)
}
