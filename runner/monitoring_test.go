package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/metrics"
	"carma/runner/server"
)

const monitoring = "../configs/monitoring"

// tool returns the path of a program of Debian's package prometheus. Without it the test is
// skipped, or fails if CI=true.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no %s here: Debian's package prometheus has it", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// monitored returns a daemon for which each figure has a value, and the address of its metrics
// page.
func monitored(t *testing.T) (g *rig, address string) {
	g = newRig(t, func(g *rig) { g.cards = newCards(3, 40*units.GiB) })
	g.script("tqdm:1", func(ctx context.Context, p *containerstest.Process) int {
		for i := 1; ctx.Err() == nil; i++ {
			fmt.Fprintf(p.Stderr, "epoch 2/10 step %d/1000 loss 0.5\n", i)
			time.Sleep(100 * time.Millisecond)
		}
		return 143
	})
	g.script("short:1", printing(0))
	g.script("bad:1", printing(1, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"))
	g.cards.set(gpu.Sample{UUID: "GPU-a", Used: 2 * units.GiB, SMACT: .5, PowerW: 300, EnergyJ: 100, TemperatureC: 60})
	g.running(g.run(api.Submit{Image: "tqdm:1", Name: "a", Mem: int64(10 * units.GiB), Exclusive: true, Visibility: access.VisibilityOpen}))
	g.running(g.run(api.Submit{Image: "tqdm:1", Name: "b", Mem: int64(10 * units.GiB), Visibility: access.VisibilityOpen}))
	g.until(g.run(api.Submit{Image: "bad:1", Mem: int64(units.GiB)}), "run again", func(t api.Task) bool { return len(t.Attempts) > 1 })
	g.run(api.Submit{Image: "short:1", Name: "waits", GPUs: 3, Exclusive: true})
	g.pages.Suspended("asked") // the fake cards cannot suspend, and show no peaks
	g.pages.Estimated("declared", 3, 4)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.ServeMetrics(ctx, l, g.MetricsPage(metrics.WithNames)) }()
	t.Cleanup(func() { end(); <-done })
	return g, l.Addr().String()
}

// TestPromtool: the page, the rules and the rules' own tests pass Prometheus's checks.
func TestPromtool(t *testing.T) {
	long(t)
	promtool := tool(t, "promtool")
	_, address := monitored(t)
	_, text := metricsPage(t, http.DefaultClient, "http://"+address+"/metrics")
	// Names of Go's own collector are not checked.
	ours := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?carma_.*$`).FindAllString(text, -1)
	check := exec.Command(promtool, "check", "metrics")
	// The label has dcgm-exporter's name; promtool would prefer model_name.
	check.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(ours, "\n")+"\n", "modelName=", "model_name="))
	rules := exec.Command(promtool, "check", "rules", "rules.yaml")
	tests := exec.Command(promtool, "test", "rules", "rules_test.yaml")
	rules.Dir, tests.Dir = monitoring, monitoring
	for _, c := range []*exec.Cmd{check, rules, tests} {
		if out, err := c.CombinedOutput(); err != nil || c == check && len(out) > 0 {
			t.Errorf("%s: %v\n%s", c.Args, err, out)
		}
	}
}

// board returns the queries of the Grafana board, by panel.
func board(t *testing.T) map[string]string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(monitoring, "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			all[p.Title+" "+q.RefID] = strings.NewReplacer("$instance", ".+", "$__rate_interval", "4s", "$__range", "4s").Replace(q.Expr)
		}
	}
	if len(all) < 25 {
		t.Fatalf("the board has %d queries", len(all))
	}
	return all
}

// TestBoardHasData: a Prometheus that reads a daemon's page answers each query of the
// board with data, and knows each figure that the rules name.
func TestBoardHasData(t *testing.T) {
	long(t)
	prometheus := tool(t, "prometheus")
	_, address := monitored(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "p.yml")
	text := "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: carma, static_configs: [{targets: ['" + address + "']}]}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	c := exec.Command(prometheus, "--config.file="+config, "--storage.tsdb.path="+dir, "--web.listen-address="+at, "--log.level=error")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	wanted := board(t)
	rules, err := os.ReadFile(filepath.Join(monitoring, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bcarma_\w+`).FindAllString(string(rules), -1) {
		wanted["rules: "+name] = name
	}
	empty := map[string]string{}
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Second) {
		clear(empty)
		for what, expr := range wanted {
			if got := ask(at, expr); got != "" {
				empty[what] = expr + ": " + got
			}
		}
		if len(empty) == 0 || time.Now().After(until) {
			break
		}
	}
	for what, got := range empty {
		t.Errorf("%s: %s", what, got)
	}
}

// ask queries a Prometheus and returns "" if it answered with data.
func ask(at, expr string) string {
	resp, err := http.Get("http://" + at + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var a struct {
		Error string
		Data  struct{ Result []any }
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return err.Error()
	}
	if a.Error != "" || len(a.Data.Result) == 0 {
		return "no data " + a.Error
	}
	return ""
}
