package runner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
)

// answerWithin is the longest time that an API answer may wait for an engine.
const answerWithin = 5 * time.Second

// TestAnswersDoNotWait: an engine hangs, and the daemon does not know it yet.
// In virtual time, each answer of the API comes within 5 s (finding F10). Task
// 1 runs, task 2 has ended.
func TestAnswersDoNotWait(t *testing.T) {
	long(t)
	submit := func(n int, pull string) func(*virtual) error {
		return func(v *virtual) error {
			var s api.Submission
			for i := range n {
				s.Tasks = append(s.Tasks, api.Submit{Image: fmt.Sprint("new-", i), Mem: int64(units.GiB), Pull: pull})
			}
			all, err := v.admission.SubmitAll(v.ctx, rootUser, s)
			if err == nil && (len(all.Tasks) != n || len(all.Warnings) != 1 || !strings.Contains(all.Warnings[0], "does not answer")) {
				err = fmt.Errorf("answered with %+v", all)
			}
			return err
		}
	}
	stop := func(s api.StopRequest) func(*virtual) error {
		return func(v *virtual) error { _, err := v.control.Stop(v.ctx, rootUser, "1", s); return err }
	}
	for what, ask := range map[string]func(*virtual) error{
		"submit":          submit(1, ""),
		"submit, pull":    submit(1, "always"),
		"submit, no pull": submit(1, "never"),
		"submit 50":       submit(50, ""),
		"submit 50, pull": submit(50, "always"),
		"stop":            stop(api.StopRequest{}),
		"stop now":        stop(api.StopRequest{Now: true}),
		"remove":          func(v *virtual) error { return v.control.Remove(v.ctx, rootUser, "2") },
		"info":            func(v *virtual) error { _, err := v.overview.Info(v.ctx); return err },
		"why":             func(v *virtual) error { _, err := v.query.Why(v.ctx, "1"); return err },
		"doctor": func(v *virtual) error {
			if c := v.Doctor(v.ctx); c[0].Status != "failure" {
				return fmt.Errorf("the first check is %+v", c[0])
			}
			return nil
		},
		"prove": func(v *virtual) error {
			if _, err := v.Prove(v.ctx, rootUser, "long"); err == nil {
				return errors.New("no error")
			}
			return nil
		},
		"prove, later": func(v *virtual) error { // it hangs while the container is created
			v.engine.Thaw()
			v.engine.HangNext(containerstest.OpCreate)
			go func() { time.Sleep(time.Millisecond); v.engine.Freeze() }()
			_, err := v.Prove(v.ctx, rootUser, "long")
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			inVirtualTime(t, func(v *virtual) {
				v.submit("long")
				v.finished(v.submit("short"))
				time.Sleep(time.Hour) // the cache of images expires
				v.engine.Freeze()
				before := time.Now()
				if err := ask(v); err != nil {
					t.Error(err)
				}
				if took := time.Since(before); took > answerWithin {
					t.Errorf("answered after %s", took)
				}
			})
		})
	}
}
