package runner

import (
	"crypto/rand"
	"encoding/hex"
	"errors"

	"carma/mapper/model"
	"carma/runner/admission"
	"carma/runner/journal"
	"carma/runner/reconcile"
)

// loadInstance reads the identity and the clock of the data folder. It makes
// them if there are none.
func (r *Runner) loadInstance() error {
	id, err := r.Journal.Meta("instance")
	if errors.Is(err, journal.ErrNotFound) {
		b := make([]byte, 4)
		rand.Read(b)
		id = []byte(hex.EncodeToString(b))
		err = r.Journal.SetMeta("instance", id)
	}
	if err != nil {
		return err
	}
	r.instance = string(id)
	r.loop.KeepReserve()
	if r.opt.SetSpeed == nil {
		return nil // with real GPUs, the wall clock decides
	}
	switch b, err := r.Journal.Meta("clock"); {
	case err == nil:
		if err := r.Clock.UnmarshalJSON(b); err != nil {
			return err
		}
	case !errors.Is(err, journal.ErrNotFound):
		return err
	}
	return r.SetSpeed(r.opt.Speed)
}

// load rebuilds the state, and finds the number of the next task.
func (r *Runner) load() error {
	if err := r.loop.Load(); err != nil {
		return err
	}
	maxRow, err := r.Journal.MaxTaskID()
	if err != nil {
		return err
	}
	r.numbers = admission.NewNumbers(max(model.TaskID(maxRow), r.loop.State().LastID()))
	r.reconciler, err = reconcile.New(reconcile.Config{
		Folder: r.opt.DataDir, Instance: r.instance, Journal: r.Journal, Records: r.records, Driver: r.Driver, Engine: r.engine,
		Loop: r.loop, Clock: r.Clock, Log: r.Log, Known: r.numbers.Reserve,
	})
	return err
}
