package runner

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/estimator"
	"carma/internal/units"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/server"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// benchDaemon serves a daemon with four tasks that occupy all GPUs, so that launching is
// not measured.
func benchDaemon(b *testing.B) (socket string) {
	b.Helper()
	dir := b.TempDir()
	j, err := journal.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() })
	engine := containerstest.NewFake()
	b.Cleanup(engine.Shutdown)
	engine.AddImage("train", containerstest.Image{Run: untilStopped})
	opt := Options{Version: "bench", DataDir: dir, Mapper: mapper.DefaultOptions(), Attach: containers.AttachSimulated,
		SampleEvery: time.Second, Pull: "never", StopGrace: time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := New(ctx, opt, Deps{
		Journal: j, Logs: tasklog.Open(filepath.Join(dir, "logs"), 0), Driver: engine, GPUs: newCards(4, 40*units.GiB),
		Estimator: estimator.NewCatalogue(nil), Clock: clock.New(1), Log: zerolog.New(io.Discard),
	})
	if err != nil {
		b.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := server.Listen(socket)
	if err != nil {
		b.Fatal(err)
	}
	var daemon sync.WaitGroup
	daemon.Go(func() {
		if err := r.RunAndServe(ctx, l); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { cancel(); daemon.Wait() })
	client := api.NewClient(socket)
	for i := range 4 {
		if _, err := client.Submit(ctx, api.Submit{Image: "train", Name: fmt.Sprintf("holder-%d", i)}); err != nil {
			b.Fatal(err)
		}
	}
	return socket
}

// BenchmarkSubmit measures durable submissions through the socket with 32
// clients: each answer means that the task is on the disk.
func BenchmarkSubmit(b *testing.B) {
	socket, ctx := benchDaemon(b), context.Background()
	const clients = 32
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for range clients {
		all.Go(func() {
			c := api.NewClient(socket)
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				began := time.Now()
				if _, err := c.Submit(ctx, api.Submit{Image: "train", Mem: int64(4 * units.GiB), Command: []string{"python", "train.py"}}); err != nil {
					b.Error(err)
					return
				}
				took[i] = time.Since(began)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
	b.ReportMetric(float64(took[b.N/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[b.N*99/100].Microseconds())/1000, "ms-p99")
}

// BenchmarkList measures the listing of 7,000 waiting tasks, page by page, as
// the daemon makes it and as a client reads it.
func BenchmarkList(b *testing.B) {
	socket, ctx := benchDaemon(b), context.Background()
	c := api.NewClient(socket)
	const tasks = 7000
	_, err := c.SubmitAll(ctx, api.Submission{Tasks: slices.Repeat([]api.Submit{{Image: "train", Mem: int64(4 * units.GiB), Command: []string{"python", "train.py"}}}, tasks)})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("page", func(b *testing.B) { // the daemon's part, and the transfer
		plain := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
		bytes := int64(0)
		for b.Loop() {
			resp, err := plain.Get("http://carma/v1/tasks?limit=1000&before=5000")
			if err != nil {
				b.Fatal(err)
			}
			bytes, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		b.ReportMetric(float64(bytes)/1000, "bytes/row")
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			list, err := c.Tasks(ctx, api.ListOptions{})
			if err != nil || len(list) != tasks+4 {
				b.Fatal(len(list), err)
			}
		}
	})
}
