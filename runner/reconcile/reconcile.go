// Package reconcile compares the containers of a data folder with the journal at a daemon's
// start. A journal may be an older copy, or may have lost its end: then containers are newer
// than the journal, and nothing is launched until somebody repairs the journal or accepts the
// loss. After an accepted loss the package restores tasks from their records and containers. It
// also removes the containers that a killed daemon could not remove.
package reconcile

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"carma/containers"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/engine"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/record"

	"github.com/rs/zerolog"
)

// Config holds the parts that a Reconciler works with.
type Config struct {
	Folder   string // the data folder, for messages
	Instance string // labels the containers of this data folder
	Journal  *journal.Journal
	Records  *record.Store
	Driver   containers.Driver
	Engine   *engine.Health
	Loop     *loop.Loop
	Clock    *clock.Clock
	Log      zerolog.Logger
	// Known is called with the number of each task that only a container has, so that the
	// number is not used again.
	Known func(model.TaskID)
}

// Reconciler compares the containers with the journal once after a start. Until then nothing is
// launched: a container that the journal does not know may have the number of the new task.
type Reconciler struct {
	folder, instance string
	journal          *journal.Journal
	records          *record.Store
	driver           containers.Driver
	engine           *engine.Health
	loop             *loop.Loop
	clock            *clock.Clock
	log              zerolog.Logger
	known            func(model.TaskID)
	compared         model.TaskID // see [Reconciler.findCompared]

	mu   sync.Mutex
	why  string        // why nothing is launched, or "" after the comparison
	bad  bool          // containers are newer than the journal
	over chan struct{} // closed after the comparison
}

// New returns the reconciler of a start. The loop has its state.
func New(c Config) (*Reconciler, error) {
	r := &Reconciler{
		folder: c.Folder, instance: c.Instance, journal: c.Journal, records: c.Records, driver: c.Driver, engine: c.Engine,
		loop: c.Loop, clock: c.Clock, log: c.Log, known: c.Known,
		over: make(chan struct{}), why: "the containers have not been compared with the journal yet",
	}
	return r, r.findCompared()
}

// Reason returns why nothing is launched, or "" after the comparison.
func (r *Reconciler) Reason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// Code returns the code of the trouble for the reason.
func (r *Reconciler) Code() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bad {
		return "newer-containers"
	}
	return "not-compared"
}

// Done is closed after the comparison.
func (r *Reconciler) Done() <-chan struct{} { return r.over }

func (r *Reconciler) refuse(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why, r.bad = why, true
}

func (r *Reconciler) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = ""
	close(r.over)
}

// lookTime bounds the comparison at a start, because the daemon must start even if the
// engine does not answer.
const lookTime = 10 * time.Second

// AtStart compares the containers with the journal before the daemon runs. If
// the engine does not answer, [Reconciler.Later] compares them later.
func (r *Reconciler) AtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	all, err := r.ownContainers(ctx)
	if err != nil {
		r.log.Warn().Err(err).Msg("the containers cannot be listed: nothing is launched until they have been compared with the journal")
		return r.loop.Note(comparedKey, strconv.AppendInt(nil, int64(r.compared), 10))
	}
	found, err := r.checkNewer(all)
	if err != nil {
		return err
	}
	return r.endReconciling(found)
}

// comparedKey is the key in the journal's meta of the last task that was known. The key exists until
// the comparison has been made.
const comparedKey = "compared"

// findCompared sets r.compared, the number of the last task that the journal
// knew when it was opened. A container of a later task is newer than the
// journal. Tasks that were submitted since do not count until the comparison is
// made.
func (r *Reconciler) findCompared() error {
	r.compared = r.loop.State().LastID()
	b, err := r.journal.Meta(comparedKey)
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err == nil {
		var n int64
		n, err = strconv.ParseInt(string(b), 10, 64)
		r.compared = model.TaskID(n)
	}
	return err
}

// endReconciling adopts the orphans that were found, and allows launches.
func (r *Reconciler) endReconciling(found []orphan) error {
	if err := r.acceptLoss(found); err != nil {
		return err
	}
	if _, err := r.journal.Meta(comparedKey); err == nil {
		if err := r.journal.DropMeta(comparedKey); err != nil {
			return err
		}
	} else if !errors.Is(err, journal.ErrNotFound) {
		return err
	}
	r.end()
	return nil
}

func (r *Reconciler) ownContainers(ctx context.Context) ([]containers.Container, error) {
	return r.driver.List(ctx, map[string]string{label.Instance: r.instance})
}

// Later makes a comparison that was not possible at the start, as soon as the engine answers.
// It calls compared in the loop if tasks may be launched from then on. If containers are newer
// than the journal, running tasks continue, and nothing is launched until a restart after a
// repair. Later returns true once the comparison is made, also if it refuses the journal, and
// false if ctx ended before or AtStart has made it.
func (r *Reconciler) Later(ctx context.Context, compared func()) bool {
	if r.Reason() == "" {
		return false
	}
	err := r.engine.Insist(ctx, func() error {
		all, err := r.ownContainers(ctx)
		if err != nil {
			return err
		}
		if lookErr := r.loop.Look(ctx, func(*mapper.State) { err = r.compare(all, compared) }); lookErr != nil {
			return lookErr
		}
		return err
	})
	return err == nil
}

// compare is the part of Later that runs in the loop. After an error, the caller
// tries again.
func (r *Reconciler) compare(all []containers.Container, compared func()) error {
	found, err := r.checkNewer(all)
	if refusal, ok := errors.AsType[*journal.Refusal](err); ok {
		said := refusal.What + " (" + strings.Join(refusal.Facts, "; ") + ")"
		r.refuse(said + engine.ToFix + "stop the daemon, then " + refusal.Fix)
		return nil
	}
	if err == nil {
		err = r.endReconciling(found)
	}
	if err == nil {
		compared()
	}
	return err
}
