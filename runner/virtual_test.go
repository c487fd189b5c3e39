package runner

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/estimator"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// virtual is a daemon on a fake engine in virtual time, without a socket.
type virtual struct {
	*Runner
	t      *testing.T
	ctx    context.Context
	engine *containerstest.Fake
}

// inVirtualTime starts a daemon, and ends it when do returns. Waiting in do takes no wall-clock
// time, and durations are exact.
func inVirtualTime(t *testing.T, do func(v *virtual)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		engine := containerstest.NewFake()
		defer engine.Shutdown()
		engine.AddImage("long", containerstest.Image{Run: untilStopped})
		engine.AddImage("short", containerstest.Image{})
		engine.AddImage("stubborn", containerstest.Image{Run: stubborn})
		j, err := journal.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		opt := Options{
			Version: "test", DataDir: dir, Mapper: mapper.DefaultOptions(), Attach: containers.AttachSimulated,
			SampleEvery: time.Minute, Pull: "missing", StopGrace: 10 * time.Second, Init: "/bin/true",
		}
		r, err := New(ctx, opt, Deps{
			Journal: j, Logs: tasklog.Open(filepath.Join(dir, "logs"), 0), Driver: engine, GPUs: newCards(2, 40*units.GiB),
			Clock: clock.New(1), Estimator: estimator.NewCatalogue(nil), Log: zerolog.Nop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		do(&virtual{Runner: r, t: t, ctx: request.WithCaller(ctx, rootUser), engine: engine})
		engine.Thaw()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// rootUser is the caller of all requests.
var rootUser = request.Caller{Name: "root"}

// submit adds a task of an image.
func (v *virtual) submit(image string) string {
	v.t.Helper()
	made, err := v.admission.Submit(v.ctx, rootUser, api.Submit{Image: image, Mem: int64(units.GiB)})
	if err != nil {
		v.t.Fatal(err)
	}
	return model.TaskID(made.ID).String()
}

// finished waits for the end of a task, at most for an hour of virtual time.
func (v *virtual) finished(ref string) *record.Record {
	v.t.Helper()
	for range 3600 {
		rec, err := v.find.Find(ref)
		if err != nil {
			v.t.Fatal(err)
		}
		if rec.Task.Phase.Finished() {
			return rec
		}
		time.Sleep(time.Second)
	}
	v.t.Fatalf("task %s has not ended after an hour", ref)
	return nil
}
