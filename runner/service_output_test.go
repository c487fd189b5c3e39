package runner

import (
	"slices"
	"testing"
	"time"

	"carma/containers"
	"carma/runner/helpers"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/tasklog"
)

// TestHelperOutput: the output of helpers is kept after their containers are gone, of the
// latest run, for its owner and admins. It survives a restart; copied output is not copied
// again; it is removed by age, like tasks' output.
func TestHelperOutput(t *testing.T) {
	g := newRig(t)
	begin := time.Now()
	printed := []string{"listening", "a request", "good-bye"}
	keep := func(since time.Time, name string, n int) {
		t.Helper()
		err := g.suites.Output().Keep(helpers.Owner{UID: ann.UID, Name: ann.Name}, "lab", since, name, func(after time.Time, sink containers.LogSink) error {
			for i, text := range printed[:n] {
				if at := begin.Add(time.Duration(i) * time.Second); at.After(after) {
					sink(at, containers.Stdout, []byte(text), false)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func(attempt int) (lines []string) {
		t.Helper()
		run, err := g.suites.Output().Find(g.authz, ann, rights.SeeSuite, "lab")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Logs.Follow(t.Context(), run.ID, attempt, tasklog.Options{}, func(l tasklog.Line) error { lines = append(lines, string(l.Text)); return nil }); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	keep(begin, "lab-db-1", 2)
	keep(begin, "lab-my-web-1", 1)
	g.restart()
	keep(begin, "lab-db-1", 3) // the daemon was killed before it had removed the container
	if got := kept(1); !slices.Equal(got, printed) {
		t.Errorf("kept %q", got)
	}
	g.sweepOutput(t.Context(), 1)
	if got := kept(2); !slices.Equal(got, printed[:1]) {
		t.Errorf("after a sweep %q", got)
	}
	s, err := g.suites.Output().Suite(g.authz, ann, "lab")
	if err != nil || len(s.Helpers) != 2 || s.Phase != "ended" || s.Helpers[0].Helper != "db" || s.Helpers[1].Helper != "my-web" || s.Helpers[1].Name != "lab-my-web-1" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := g.suites.Output().Suite(g.authz, request.Caller{UID: ann.UID + 1, Name: "eve"}, "lab"); !request.IsNotFound(err) {
		t.Errorf("another user: %v", err)
	}
	if _, err := g.suites.Output().Suite(g.authz, request.Caller{Name: "root"}, "lab"); err != nil {
		t.Errorf("an admin: %v", err)
	}
	before, _ := g.suites.Output().Find(g.authz, ann, rights.SeeSuite, "lab")
	keep(begin.Add(time.Hour), "lab-db-1", 1) // the next run
	if got := kept(1); !slices.Equal(got, printed[:1]) {
		t.Errorf("of the next run %q", got)
	}
	if now, _ := g.suites.Output().Find(g.authz, ann, rights.SeeSuite, "lab"); now.Since.Equal(before.Since) {
		t.Errorf("%+v, before %+v", now, before)
	}
	live := *g.live()
	live.Keep.OutputFor = time.Nanosecond
	g.set.Store(&live)
	g.suites.Output().Expire()
	if ids, err := g.Logs.Tasks(); err != nil || len(ids) > 0 {
		t.Errorf("left: %v, %v", ids, err)
	}
	if _, err := g.suites.Output().Suite(g.authz, ann, "lab"); !request.IsNotFound(err) {
		t.Errorf("after its time: %v", err)
	}
}
