package storedoutput

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/runner/clock"
	"carma/runner/helpers"
	"carma/runner/request"
	"carma/runner/retention"
	"carma/runner/rights"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

type memory map[string][]byte

func (m memory) Put(key string, value []byte) error { m[key] = value; return nil }

func (m memory) Get(key string) ([]byte, error) { return m[key], nil }

// owners lets only owners access what is theirs; root administers all.
type owners struct{}

func (owners) Subject(who request.Caller) rights.Caller {
	return rights.Caller{UID: who.UID, Name: who.Name}
}

func (owners) Administers(who request.Caller) bool { return who.UID == 0 }

func (owners) AuthorizeSuite(request.Caller, rights.Action, rights.Owner, string) error { return nil }

// TestRunsKept: only the newest runs of a user are kept, one of each suite, also by the next
// daemon, and for its owner and administrators.
func TestRunsKept(t *testing.T) {
	deps := HelperDeps{
		Store: memory{}, Logs: tasklog.Open(t.TempDir(), 0), Clock: clock.New(1), Log: zerolog.Nop(),
		Limits: func() retention.Keep { return retention.Keep{} },
	}
	h, err := LoadHelpers(deps)
	if err != nil {
		t.Fatal(err)
	}
	ann := helpers.Owner{UID: 1000, Name: "ann"}
	print := func(after time.Time, sink containers.LogSink) error {
		sink(after.Add(time.Second), containers.Stdout, []byte("x"), false)
		return nil
	}
	for i := range helperRuns + 2 {
		suite := fmt.Sprint("s", i)
		for _, since := range []int64{1, 2} {
			if err := h.Keep(ann, suite, time.Unix(since, 0), suite+"-my-web-1", print); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h, err = LoadHelpers(deps); err != nil || len(h.runs) != helperRuns {
		t.Fatalf("%d runs, %v", len(h.runs), err)
	}
	if ids, err := deps.Logs.Tasks(); err != nil || len(ids) != helperRuns || !h.Has(ids[0]) || h.Has(1) {
		t.Errorf("%v, %v", ids, err)
	}
	last := fmt.Sprint("s", helperRuns+1)
	for _, c := range []struct {
		who   request.Caller
		suite string
		there bool
	}{
		{request.Caller{UID: 1000, Name: "ann"}, last, true}, {request.Caller{UID: 1000, Name: "ann"}, "s0", false},
		{request.Caller{Name: "root"}, last, true}, {request.Caller{UID: 1001, Name: "bob"}, last, false},
	} {
		s, err := h.Suite(owners{}, c.who, c.suite)
		if (err == nil) != c.there || c.there && (len(s.Helpers) != 1 || s.Helpers[0].Helper != "my-web" || !s.Since.Equal(time.Unix(2, 0))) {
			t.Errorf("%s of %s: %+v, %v", c.suite, c.who.Name, s, err)
		}
	}
	h.Limits = func() retention.Keep { return retention.Keep{OutputFor: time.Nanosecond} }
	if h.Expire(); len(h.runs) != 0 {
		t.Errorf("%d runs after their time", len(h.runs))
	}
}

// TestHealth: a failure is logged once until output can be kept again. A limit is none.
func TestHealth(t *testing.T) {
	var out bytes.Buffer
	h := NewHealth(tasklog.Open(t.TempDir(), 0), nil, zerolog.New(&out).Level(zerolog.InfoLevel))
	logged := func(want int) {
		t.Helper()
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("%d lines, want %d: %s", got, want, out.String())
		}
		out.Reset()
	}
	h.Lost(fmt.Errorf("task 1: %w", tasklog.ErrLimit))
	h.Check()
	logged(0)
	h.Lost(errors.New("no space left"))
	h.Lost(errors.New("no space left"))
	logged(1)
	h.Check()
	h.Check()
	logged(1)
}
