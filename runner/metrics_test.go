package runner

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/metrics"
	"carma/runner/server"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metricsPage reads a page of metrics from an address.
func metricsPage(t *testing.T, client *http.Client, url string) (map[string]*dto.MetricFamily, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %s %s", err, resp.Status, body)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	return families, string(body)
}

// bySocket returns a client of the daemon's socket.
func bySocket(g *rig) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", g.api.Socket())
	}}}
}

// value returns the only figure of a family that has labels with all these values, or -1.
func value(f *dto.MetricFamily, labels ...string) float64 {
	for _, m := range f.GetMetric() {
		text := ""
		for _, l := range m.GetLabel() {
			text += "|" + l.GetName() + "=" + l.GetValue() + "|"
		}
		fits := true
		for _, l := range labels {
			fits = fits && strings.Contains(text, "|"+l+"|")
		}
		if fits {
			switch {
			case m.Gauge != nil:
				return m.Gauge.GetValue()
			case m.Counter != nil:
				return m.Counter.GetValue()
			case m.Histogram != nil:
				return float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return -1
}

// TestMetricsPage: a page agrees with the daemon's API, and its counters count.
func TestMetricsPage(t *testing.T) {
	g := newRig(t)
	g.script("long:1", untilStopped)
	g.script("short:1", printing(0))
	g.script("bad:1", printing(1, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"))
	long := g.run(api.Submit{Image: "long:1", Name: "long", Mem: int64(10 * units.GiB)})
	g.running(long)
	g.finished(g.run(api.Submit{Image: "short:1", Mem: int64(units.GiB)}))
	g.finished(g.run(api.Submit{Image: "bad:1", Mem: int64(units.GiB)}))
	g.cards.set(gpu.Sample{UUID: "GPU-b", Fault: "it fell off", PowerW: 90, TemperatureC: 61, ECCErrors: 3})
	client := bySocket(g)
	var f map[string]*dto.MetricFamily
	for until := time.Now().Add(stepTimeout); ; time.Sleep(50 * time.Millisecond) {
		f, _ = metricsPage(t, client, "http://carma/metrics")
		// A page reads the state before it reads the counters, so that a fault that begins
		// between the two is counted on a page whose gauges do not show it yet.
		seen := value(f["carma_gpu_faults_total"], "UUID=GPU-b") == 1 && value(f["carma_gpu_fault"], "UUID=GPU-b") == 1
		if seen || time.Now().After(until) {
			break
		}
	}
	user := "user=" + g.present(long).User
	for name, want := range map[string]float64{
		"carma_build_info version=test":                                              1,
		"carma_gpu_memory_capacity_bytes gpu=0 device=nvidia0 modelName=test":        40 << 30,
		"carma_gpu_memory_reserved_bytes UUID=GPU-a":                                 10 << 30,
		"carma_gpu_tasks UUID=GPU-a":                                                 1,
		"carma_gpu_fault UUID=GPU-b":                                                 1,
		"carma_gpu_fault UUID=GPU-a":                                                 0,
		"carma_gpu_faults_total UUID=GPU-b":                                          1,
		"carma_gpu_faults_total UUID=GPU-a":                                          0,
		"carma_gpu_power_watts UUID=GPU-b":                                           90,
		"carma_gpu_temperature_celsius UUID=GPU-b":                                   61,
		"carma_gpu_temperature_celsius UUID=GPU-a":                                   -1,
		"carma_gpu_ecc_errors_total UUID=GPU-b":                                      3,
		"carma_task_memory_reserved_bytes name=long gpu=0 UUID=GPU-a device=nvidia0": 10 << 30,
		"carma_task_attempts name=long":                                              1,
		"carma_user_running_tasks " + user:                                           1,
		"carma_running_tasks":                                                        1,
		"carma_tasks_finished_total phase=succeeded":                                 1,
		"carma_tasks_finished_total phase=failed":                                    1,
		"carma_task_ooms_total kind=gpu":                                             float64(g.opt.Mapper.Attempts),
		"carma_task_relaunches_total reason=gpu-oom":                                 float64(g.opt.Mapper.Attempts - 1),
		"carma_task_wait_seconds":                                                    3,
		"carma_engine_up":                                                            1,
	} {
		parts := strings.Fields(name)
		if got := value(f[parts[0]], parts[1:]...); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"carma_journal_size_bytes", "carma_journal_commit_seconds", "carma_user_gpu_seconds_total", "carma_task_started_timestamp_seconds"} {
		if value(f[name]) <= 0 {
			t.Errorf("%s is %v", name, value(f[name]))
		}
	}
}

// present returns a task as it is now.
func (g *rig) present(ref string) api.Task {
	g.t.Helper()
	task, err := g.api.Task(g.ctx(), ref)
	if err != nil {
		g.t.Fatal(err)
	}
	return task
}

// TestMetricsWithoutNames: a page without names has neither tasks nor users, and the
// same figures of GPUs.
func TestMetricsWithoutNames(t *testing.T) {
	g := newRig(t)
	g.script("long:1", untilStopped)
	g.running(g.run(api.Submit{Image: "long:1", Name: "secretive", Mem: int64(10 * units.GiB)}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(g.ctx())
	done := make(chan error)
	go func() { done <- server.ServeMetrics(ctx, l, g.MetricsPage(metrics.WithoutNames)) }()
	f, text := metricsPage(t, http.DefaultClient, "http://"+l.Addr().String()+"/metrics")
	if value(f["carma_gpu_memory_reserved_bytes"], "gpu=0") != 10<<30 || value(f["carma_running_tasks"]) != 1 || value(f["carma_tasks_gpu_seconds_total"]) <= 0 {
		t.Error("figures are missing:\n", text)
	}
	for _, word := range []string{"secretive", "user=", "task="} {
		if strings.Contains(text, word) {
			t.Errorf("the page has %q", word)
		}
	}
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestMetricsGoOn checks that GPU-seconds never decrease, even after a restart of the daemon.
func TestMetricsGoOn(t *testing.T) {
	g := newRig(t)
	g.script("long:1", untilStopped)
	g.running(g.run(api.Submit{Image: "long:1", Mem: int64(units.GiB)}))
	of := func() float64 {
		f, _ := metricsPage(t, bySocket(g), "http://carma/metrics")
		return value(f["carma_user_gpu_seconds_total"])
	}
	time.Sleep(300 * time.Millisecond)
	before := of()
	g.restart()
	if after := of(); before < 0.25 || after < before || after > before+5 {
		t.Errorf("%v seconds, and %v after a restart", before, after)
	}
}
