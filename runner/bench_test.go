package runner

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/estimator"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// BenchmarkSubmit measures durable submissions through the socket with 32
// clients: each answer means that the task is on the disk. The GPUs are taken,
// so that what is measured is submitting and not launching.
func BenchmarkSubmit(b *testing.B) {
	dir := b.TempDir()
	j, err := journal.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	engine := containerstest.NewFake()
	defer engine.Shutdown()
	engine.AddImage("train", containerstest.Image{Run: untilStopped})
	opt := Options{Version: "bench", DataDir: dir, Mapper: mapper.DefaultOptions(), Attach: containers.AttachSimulated,
		SampleEvery: time.Second, Pull: "never", StopGrace: time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := New(ctx, opt, Deps{
		Journal: j, Logs: tasklog.Open(filepath.Join(dir, "logs"), 0), Driver: engine, GPUs: newCards(4, 40*mapper.GiB),
		Estimator: estimator.NewCatalogue(nil), Clock: NewClock(1), Log: zerolog.New(io.Discard),
	})
	if err != nil {
		b.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	l, err := Listen(socket)
	if err != nil {
		b.Fatal(err)
	}
	var daemon sync.WaitGroup
	daemon.Go(func() {
		if err := r.RunAndServe(ctx, l); err != nil {
			b.Error(err)
		}
	})
	defer daemon.Wait()
	defer cancel()
	client := api.NewClient(socket)
	for i := range 4 {
		if _, err := client.Submit(ctx, api.Submit{Image: "train", Name: fmt.Sprintf("holder-%d", i)}); err != nil {
			b.Fatal(err)
		}
	}

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
				if _, err := c.Submit(ctx, api.Submit{Image: "train", Mem: int64(4 * mapper.GiB), Command: []string{"python", "train.py"}}); err != nil {
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
