package runner

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/helpers"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/tasklog"
)

// helperRun is a run of a suite with stored output of helpers. It is in the store of the
// tasks' output, under a number below 0; its attempts are the containers.
type helperRun struct {
	ID    int64         `json:"id"`
	UID   int           `json:"uid"`
	User  string        `json:"user"`
	Suite string        `json:"suite"`
	Since time.Time     `json:"since"`
	Ended units.Instant `json:"ended"`
	Names []string      `json:"names"` // names of the containers; attempt n has the name at index n-1
}

// helperOutput holds the latest run of each suite. Safe for concurrent use.
type helperOutput struct {
	*Runner
	mu   sync.Mutex
	runs []helperRun
}

const (
	// helperOutputKey is the journal key of the runs.
	helperOutputKey = "helper-output"
	// helperRuns is the number of ended suites of a user whose output is kept.
	helperRuns = 64
)

// load reads the runs from the journal.
func (h *helperOutput) load() error {
	b, err := metaStore{h.Runner}.Get(helperOutputKey)
	if err != nil || b == nil {
		return err
	}
	return json.Unmarshal(b, &h.runs)
}

func (h *helperOutput) store() error {
	b, err := json.Marshal(h.runs)
	if err != nil {
		return err
	}
	return metaStore{h.Runner}.Put(helperOutputKey, b)
}

// keep copies the output of a helper's container before the container is removed. Output
// that was copied before is not copied again.
func (h *helperOutput) keep(o helpers.Owner, suite string, since time.Time, name string, read func(after time.Time, sink containers.LogSink) error) error {
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
			noteMissing(w, at, line)
			return
		}
		_ = w.Write(at, tasklog.Stream(stream), line, partial) // the store records losses
	})
	err = firstError(err, w.Close())
	h.Logs.Done(id, int64(h.Clock.Now()))
	return err
}

// open returns the place of a container's output, and records it. It drops earlier runs of
// the suite.
func (h *helperOutput) open(o helpers.Owner, suite string, since time.Time, name string) (id int64, attempt int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(func(r *helperRun) bool { return r.UID == o.UID && r.Suite == suite && !r.Since.Equal(since) })
	i := slices.IndexFunc(h.runs, func(r helperRun) bool { return r.UID == o.UID && r.Suite == suite })
	if i < 0 {
		least := int64(0)
		for _, r := range h.runs {
			least = min(least, r.ID)
		}
		h.runs = append(h.runs, helperRun{ID: least - 1, UID: o.UID, User: o.Name, Suite: suite, Since: since})
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
				h.drop(func(r *helperRun) bool { return r.ID == old })
				break
			}
		}
	}
	return id, attempt, h.store()
}

// drop removes runs with their output. The caller holds mu, and stores the runs
// afterwards.
func (h *helperOutput) drop(which func(*helperRun) bool) (n int) {
	h.runs = slices.DeleteFunc(h.runs, func(r helperRun) bool {
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

// expire drops outdated output, by the limits of tasks' output.
func (h *helperOutput) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := h.live().Keep
	old := func(r *helperRun) bool {
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

// count gives the store the owner of each output.
func (h *helperOutput) count() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		h.Logs.Own(r.ID, r.User)
		h.Logs.Done(r.ID, int64(r.Ended))
	}
}

// has reports whether a number belongs to a known run.
func (h *helperOutput) has(id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.runs, func(r helperRun) bool { return r.ID == id })
}

// find returns a run that a caller may access: the caller's own run, or for an
// administrator the run of the only user who has a run of this name.
func (h *helperOutput) find(who request.Caller, a rights.Action, suite string) (helperRun, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var others []helperRun
	for _, r := range h.runs {
		switch {
		case r.Suite != suite:
		case rights.Owns(h.authz.Subject(who), rights.Owner{UID: r.UID, Name: r.User}):
			return r, nil
		default:
			others = append(others, r)
		}
	}
	if len(others) == 1 && h.authz.Administers(who) {
		run := others[0]
		return run, h.authz.AuthorizeSuite(who, a, rights.Owner{UID: run.UID, Name: run.User}, suite)
	}
	return helperRun{}, request.Errorf(http.StatusNotFound, "no output of helpers of a suite %s of yours is kept", suite)
}

// EndedSuite returns the stored state of the helpers of a suite that has ended.
func (r *Runner) EndedSuite(who request.Caller, suite string) (api.SuiteState, error) {
	run, err := r.helperOut.find(who, rights.SeeSuite, suite)
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

// streamEnded sends the output that is kept of a helper's container.
func (r *Runner) streamEnded(s *sender, run helperRun, name string, opt api.LogOptions) error {
	attempt := slices.Index(run.Names, name) + 1
	err := r.Logs.Follow(r.work, run.ID, attempt, tasklog.Options{Tail: opt.Tail}, func(l tasklog.Line) error {
		return s.send("log", api.LogLine{At: r.Clock.FromWall(l.At).Time(), Attempt: 1, Stream: streamNames[l.Stream], Line: string(l.Text), Partial: l.Partial})
	})
	return firstError(err, s.send("end", struct{}{}))
}
