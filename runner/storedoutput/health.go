package storedoutput

import (
	"errors"
	"fmt"
	"sync"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// Health knows whether output can be kept. It logs once, not for each task, that it cannot.
type Health struct {
	logs    *tasklog.Store
	journal *journal.Journal
	log     zerolog.Logger

	mu     sync.Mutex
	logged error // the last error logged, or nil while output can be kept
}

// NewHealth returns the health of a store of output.
func NewHealth(logs *tasklog.Store, j *journal.Journal, log zerolog.Logger) *Health {
	return &Health{logs: logs, journal: j, log: log}
}

// Lost logs a failure to store output. If a limit is the reason, the output itself says
// so. Other failures are logged once until output can be stored again.
func (o *Health) Lost(err error) {
	if errors.Is(err, tasklog.ErrLimit) {
		o.log.Debug().Err(err).Msg("output is over a limit")
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logged == nil {
		o.logged = err
		o.log.Warn().Err(err).Msg("output cannot be kept; the tasks go on, and their output says what is missing")
	}
}

// Check logs when output can be kept again.
func (o *Health) Check() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logged != nil && o.logs.Check() == nil {
		o.logged = nil
		o.log.Info().Msg("output can be kept")
	}
}

// View returns the size of the stored output, for info and doctor.
func (o *Health) View() *api.Output {
	u := o.logs.Usage()
	v := &api.Output{Dir: u.Dir, Bytes: u.Bytes, Total: u.Total, User: u.User, Task: u.Task, Free: u.Free, Users: u.Users, Tasks: u.Tasks}
	if n, err := o.journal.FinishedByUser(); err == nil {
		for _, tasks := range n {
			v.Finished += tasks
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logged != nil {
		v.Trouble = o.logged.Error()
	}
	return v
}

// Doctor checks the store of output for doctor.
func (o *Health) Doctor() api.Check {
	v := o.View()
	c := api.Check{Name: "output", Status: "ok", Detail: fmt.Sprintf("%s of at most %s in %s; %d finished tasks are kept",
		units.Bytes(v.Bytes), units.Bytes(v.Total), v.Dir, v.Finished)}
	err := o.logs.Check()
	var fs unix.Statfs_t
	free := int64(-1)
	if err == nil && unix.Statfs(v.Dir, &fs) == nil {
		free = int64(fs.Bavail) * fs.Bsize
	}
	switch {
	case err != nil:
		c.Status, c.Detail = "failure", "output cannot be kept: "+err.Error()
		c.Fix = "make " + v.Dir + " a folder that the daemon can write, or set output-dir; tasks go on meanwhile"
	case free >= 0 && free < v.Free:
		c.Status, c.Detail = "warning", fmt.Sprintf("only %s free in %s: output stops growing at %s", units.Bytes(free), v.Dir, units.Bytes(v.Free))
		c.Fix = "free some space, or set output-dir to another disk"
	}
	return c
}
