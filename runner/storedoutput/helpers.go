package storedoutput

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/helpers"
	"carma/runner/request"
	"carma/runner/retention"
	"carma/runner/rights"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// Run is a run of a suite with stored output of helpers. It is in the store of the
// tasks' output, under a number below 0; its attempts are the containers.
type Run struct {
	ID    int64         `json:"id"`
	UID   int           `json:"uid"`
	User  string        `json:"user"`
	Suite string        `json:"suite"`
	Since time.Time     `json:"since"`
	Ended units.Instant `json:"ended"`
	Names []string      `json:"names"` // names of the containers; attempt n has the name at index n-1
}

// HelperDeps holds what the output of helpers is kept with.
type HelperDeps struct {
	Store Store
	Logs  *tasklog.Store
	Clock *clock.Clock
	Log   zerolog.Logger
	// Limits returns the present limits of tasks' output.
	Limits func() retention.Keep
}

// Store keeps a value under a key. Get returns nil without an error if there is no value.
type Store interface {
	Put(key string, value []byte) error
	Get(key string) ([]byte, error)
}

// Authority decides who accesses the output of a suite's helpers.
type Authority interface {
	Subject(request.Caller) rights.Caller
	Administers(request.Caller) bool
	AuthorizeSuite(request.Caller, rights.Action, rights.Owner, string) error
}

// Helpers holds the latest run of each suite. Safe for concurrent use.
type Helpers struct {
	HelperDeps
	mu   sync.Mutex
	runs []Run
}

const (
	// helperOutputKey is the journal key of the runs.
	helperOutputKey = "helper-output"
	// helperRuns is the number of ended suites of a user whose output is kept.
	helperRuns = 64
)

// LoadHelpers reads the runs from the store.
func LoadHelpers(deps HelperDeps) (*Helpers, error) {
	h := &Helpers{HelperDeps: deps}
	b, err := h.Store.Get(helperOutputKey)
	if err != nil || b == nil {
		return h, err
	}
	return h, json.Unmarshal(b, &h.runs)
}

func (h *Helpers) store() error {
	b, err := json.Marshal(h.runs)
	if err != nil {
		return err
	}
	return h.Store.Put(helperOutputKey, b)
}

// Keep copies the output of a helper's container before the container is removed. Output
// that was copied before is not copied again.
func (h *Helpers) Keep(o helpers.Owner, suite string, since time.Time, name string, read func(after time.Time, sink containers.LogSink) error) error {
	id, attempt, err := h.open(o, suite, since, name)
	if err != nil {
		return err
	}
	h.Logs.Own(id, o.Name)
	w, err := h.Logs.Writer(id, attempt)
	if err != nil {
		return err
	}
	err = read(w.Last(), func(at time.Time, stream containers.Stream, line []byte, partial bool) {
		if stream == containers.Missing {
			NoteMissing(w, at, line)
			return
		}
		_ = w.Write(at, tasklog.Stream(stream), line, partial) // the store records losses
	})
	err = cmp.Or(err, w.Close())
	h.Logs.Done(id, int64(h.Clock.Now()))
	return err
}

// open returns the place of a container's output, and records it. It drops earlier runs of
// the suite.
func (h *Helpers) open(o helpers.Owner, suite string, since time.Time, name string) (id int64, attempt int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(func(r *Run) bool { return r.UID == o.UID && r.Suite == suite && !r.Since.Equal(since) })
	i := slices.IndexFunc(h.runs, func(r Run) bool { return r.UID == o.UID && r.Suite == suite })
	if i < 0 {
		least := int64(0)
		for _, r := range h.runs {
			least = min(least, r.ID)
		}
		h.runs = append(h.runs, Run{ID: least - 1, UID: o.UID, User: o.Name, Suite: suite, Since: since})
		i = len(h.runs) - 1
	}
	r := &h.runs[i]
	r.Ended = h.Clock.Now()
	if attempt = slices.Index(r.Names, name) + 1; attempt == 0 {
		r.Names = append(r.Names, name)
		attempt = len(r.Names)
	}
	id = r.ID
	own := 0
	for i := range slices.Backward(h.runs) { // keep the newest runs
		if h.runs[i].UID == o.UID {
			if own++; own > helperRuns {
				old := h.runs[i].ID
				h.drop(func(r *Run) bool { return r.ID == old })
				break
			}
		}
	}
	return id, attempt, h.store()
}

// drop removes runs with their output. The caller holds mu, and stores the runs
// afterwards.
func (h *Helpers) drop(which func(*Run) bool) (n int) {
	h.runs = slices.DeleteFunc(h.runs, func(r Run) bool {
		if !which(&r) {
			return false
		}
		if err := h.Logs.Remove(r.ID); err != nil {
			h.Log.Warn().Err(err).Str("suite", r.Suite).Msg("the output of helpers could not be deleted; the next start tries again")
		}
		n++
		return true
	})
	return n
}

// Expire drops outdated output, by the limits of tasks' output.
func (h *Helpers) Expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := h.Limits()
	old := func(r *Run) bool {
		age := h.Clock.Now().Sub(r.Ended)
		return keep.OutputFor > 0 && age > keep.OutputFor || keep.TasksFor > 0 && age > keep.TasksFor
	}
	if h.drop(old) == 0 {
		return
	}
	if err := h.store(); err != nil {
		h.Log.Warn().Err(err).Msg("the journal still names output of helpers that is deleted")
	}
}

// Count gives the store the owner of each output.
func (h *Helpers) Count() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		h.Logs.Own(r.ID, r.User)
		h.Logs.Done(r.ID, int64(r.Ended))
	}
}

// Has reports whether a number belongs to a known run.
func (h *Helpers) Has(id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.runs, func(r Run) bool { return r.ID == id })
}

// Find returns a run that a caller may access: the caller's own run, or for an
// administrator the run of the only user who has a run of this name.
func (h *Helpers) Find(auth Authority, who request.Caller, a rights.Action, suite string) (Run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var others []Run
	for _, r := range h.runs {
		switch {
		case r.Suite != suite:
		case rights.Owns(auth.Subject(who), rights.Owner{UID: r.UID, Name: r.User}):
			return r, nil
		default:
			others = append(others, r)
		}
	}
	if len(others) == 1 && auth.Administers(who) {
		run := others[0]
		return run, auth.AuthorizeSuite(who, a, rights.Owner{UID: run.UID, Name: run.User}, suite)
	}
	return Run{}, request.Errorf(http.StatusNotFound, "no output of helpers of a suite %s of yours is kept", suite)
}

// Suite returns the stored state of the helpers of a suite that has ended.
func (h *Helpers) Suite(auth Authority, who request.Caller, suite string) (api.SuiteState, error) {
	run, err := h.Find(auth, who, rights.SeeSuite, suite)
	if err != nil {
		return api.SuiteState{}, err
	}
	s := api.SuiteState{Name: run.Suite, User: run.User, Phase: "ended", Since: run.Since, Helpers: []api.HelperState{}}
	for _, name := range run.Names {
		s.Helpers = append(s.Helpers, api.HelperState{Helper: helperOf(run.Suite, name), Name: name, State: "exited"})
	}
	return s, nil
}

// helperOf returns the helper's name from a container's name, which has the parts suite,
// helper and number.
func helperOf(suite, name string) string {
	if len(name) > len(suite) {
		name = name[len(suite)+1:]
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '-' {
			return name[:i]
		}
	}
	return name
}
