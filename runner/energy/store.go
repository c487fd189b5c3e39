package energy

import (
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// Key is the key in the journal's meta for the part of the accounts that a killed daemon would
// lose.
const Key = "energy"

// Store keeps values under keys. A journal is one.
type Store interface {
	Meta(key string) ([]byte, error)
	SetMeta(key string, value []byte) error
}

// Open returns the accounts of GPUs with these parents, with what an earlier daemon has stored
// about attempts that are alive. The error says why that cannot be read; it counts from now on.
func Open(now units.Instant, parents map[string]string, store Store, alive func(gpu.AttemptKey) bool) (*Accounts, error) {
	a := New(now, parents)
	body, err := store.Meta(Key)
	if err != nil {
		return a, nil // no accounts are stored, or the journal's check reports the error
	}
	return a, a.Load(body, alive)
}

// Store stores the accounts. If that fails, a daemon that is killed loses more of them.
func (b *Accounts) Store(now units.Instant, store Store) error {
	body := b.save(now)
	if body == nil {
		return nil
	}
	err := store.SetMeta(Key, body)
	if err != nil {
		b.markUnsaved()
	}
	return err
}

// SetActivityOf takes the tasks' activity from GPUs with several tasks.
func (b *Accounts) SetActivityOf(pages []model.GPU) { b.setActivity(busyOf(pages)) }

// busyOf returns the SM activity that each task causes on some GPUs.
func busyOf(pages []model.GPU) map[string]map[model.TaskID]float64 {
	busy := map[string]map[model.TaskID]float64{}
	for i := range pages {
		g := &pages[i]
		of := map[model.TaskID]float64{}
		for j := range g.Residents {
			of[g.Residents[j].Task] = g.Residents[j].Load.SMACT * g.Residents[j].Speed
		}
		busy[string(g.ID)] = of
	}
	return busy
}
