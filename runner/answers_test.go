package runner

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carma/mapper/units"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/estimator"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// answerWithin is how long an answer of the API may wait for an engine.
const answerWithin = 5 * time.Second

// question is what somebody asks of a daemon that runs task 1 and has finished
// task 2.
type question func(ctx context.Context, r *Runner) error

// TestAnswersDoNotWait: finding F10. An engine hangs and nobody knows it yet. In
// virtual time, each answer of the API comes within 5 s.
func TestAnswersDoNotWait(t *testing.T) {
	admin := Caller{Name: "root"}
	submit := func(n int, pull string) question {
		return func(ctx context.Context, r *Runner) error {
			var s api.Submission
			for i := range n {
				s.Tasks = append(s.Tasks, api.Submit{Image: fmt.Sprint("new-", i), Mem: int64(units.GiB), Pull: pull})
			}
			all, err := r.SubmitAll(ctx, admin, s)
			if err == nil && (len(all.Tasks) != n || len(all.Warnings) != 1 || !strings.Contains(all.Warnings[0], "does not answer")) {
				err = fmt.Errorf("answered with %+v", all)
			}
			return err
		}
	}
	for what, ask := range map[string]question{
		"submit":          submit(1, ""),
		"submit, pull":    submit(1, "always"),
		"submit, no pull": submit(1, "never"),
		"submit 50":       submit(50, ""),
		"submit 50, pull": submit(50, "always"),
		"info":            func(ctx context.Context, r *Runner) error { _, err := r.Info(ctx); return err },
		"why":             func(ctx context.Context, r *Runner) error { _, err := r.Why(ctx, "1"); return err },
		"stop": func(ctx context.Context, r *Runner) error {
			_, err := r.Stop(ctx, admin, "1", api.StopRequest{})
			return err
		},
		"stop now": func(ctx context.Context, r *Runner) error {
			_, err := r.Stop(ctx, admin, "1", api.StopRequest{Now: true})
			return err
		},
		"remove": func(ctx context.Context, r *Runner) error { return r.Remove(ctx, admin, "2") },
		"doctor": func(ctx context.Context, r *Runner) error {
			if c := r.Doctor(ctx); c[0].Status != "failure" {
				return fmt.Errorf("the first check is %+v", c[0])
			}
			return nil
		},
		"prove": func(ctx context.Context, r *Runner) error {
			if _, err := r.Prove(ctx, admin, "long"); err == nil {
				return fmt.Errorf("no error")
			}
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { askOfHung(t, dir, ask) })
		})
	}
}

// askOfHung asks at the moment when the engine begins to hang.
func askOfHung(t *testing.T, dir string, ask question) {
	engine := containerstest.NewFake()
	defer engine.Shutdown()
	engine.AddImage("long", containerstest.Image{Run: untilStopped})
	engine.AddImage("short", containerstest.Image{})
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
		Clock: NewClock(1), Estimator: estimator.NewCatalogue(nil), Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for _, image := range []string{"long", "short"} {
		if _, err := r.Submit(ctx, Caller{Name: "root"}, api.Submit{Image: image, Mem: int64(units.GiB)}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Hour) // all that was looked up is forgotten
	engine.Freeze()
	before := time.Now()
	if err := ask(ctx, r); err != nil {
		t.Error(err)
	}
	if took := time.Since(before); took > answerWithin {
		t.Errorf("answered after %s", took)
	}
	engine.Thaw()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
