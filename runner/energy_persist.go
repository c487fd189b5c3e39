package runner

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
)

// energyKey is the key in the journal's meta for the part of the energy book that a killed
// daemon would lose.
const energyKey = "energy"

// energyNote is the book in the journal's form.
type energyNote struct {
	At       units.Instant         `json:"at"`
	Since    units.Instant         `json:"since"`
	Users    map[string]float64    `json:"users,omitempty"`
	Held     map[string]float64    `json:"gpu_seconds,omitempty"`
	Idle     float64               `json:"idle,omitempty"`
	Attempts []energyKept          `json:"attempts,omitempty"`
	GPUs     map[string]*energyGap `json:"gpus,omitempty"`
}

// energyKept holds the joules of an attempt that no record has yet.
type energyKept struct {
	Task    model.TaskID `json:"task"`
	Attempt int          `json:"attempt"`
	Joules  float64      `json:"joules,omitempty"`
}

func (k energyKept) key() attemptKey { return attemptKey{k.Task, k.Attempt} }

// energyGap is the state of a GPU when a daemon ended.
type energyGap struct {
	At    units.Instant `json:"at,omitempty"`
	Own   float64       `json:"own,omitempty"`   // the card's own counter in joules, or 0 if it has none
	Least float64       `json:"least,omitempty"` // the lowest draw that was seen without tasks
	On    []energyKept  `json:"on,omitempty"`    // the attempts there; their joules do not count
}

func (g *energyGap) has(key attemptKey) bool {
	return g != nil && slices.ContainsFunc(g.On, func(k energyKept) bool { return k.key() == key })
}

// gone returns a GPU's energy use since an earlier daemon read its counter. The energy is
// shared among the attempts that ran there all the time, if no attempt started or ended.
// Otherwise it belongs to nobody, and joules is 0. over is false while this is not
// decided.
func (b *energyBook) gone(now units.Instant, s *gpu.Sample, g *energyGap, on []attemptKey) (joules, seconds float64, over bool) {
	for _, k := range g.On {
		switch line := b.open[k.key()]; {
		case line == nil || line.runs && !line.stayed:
			return 0, 0, true
		case !line.runs:
			return 0, 0, false // the attempt's container has not been found yet
		}
	}
	seconds = max(0, now.Sub(g.At)).Seconds()
	grown := sensible(s.CounterJ) - g.Own
	if len(on) != len(g.On) || g.Own <= 0 || grown < 0 || grown > mostDraw*(seconds+1) {
		return 0, 0, true // another process was there, or the counter was reset
	}
	return grown, seconds, true
}

// note returns the book for the journal, or nil if nothing changed since the last note.
func (b *energyBook) note(now units.Instant) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirty {
		return nil
	}
	b.countAll(now)
	b.dirty = false
	n := energyNote{At: now, Since: b.since, Users: maps.Clone(b.users), Held: maps.Clone(b.held), Idle: hundredths(b.idle), GPUs: map[string]*energyGap{}}
	for user, joules := range n.Users {
		n.Users[user] = hundredths(joules)
	}
	for key, line := range b.open {
		n.Attempts = append(n.Attempts, energyKept{key.task, key.attempt, hundredths(line.joules)})
	}
	slices.SortFunc(n.Attempts, func(a, b energyKept) int { return cmp.Or(cmp.Compare(a.Task, b.Task), a.Attempt-b.Attempt) })
	for uuid, c := range b.cards {
		left := &energyGap{At: c.at, Own: c.own}
		for _, key := range b.on(uuid) {
			left.On = append(left.On, energyKept{Task: key.task, Attempt: key.attempt})
		}
		if c.gap != nil {
			left = new(*c.gap)
		}
		left.Least = c.least
		n.GPUs[uuid] = left
	}
	body, err := json.Marshal(n)
	if err != nil {
		return nil
	}
	return body
}

// recall continues from a note. open reports whether an attempt is in no record yet.
func (b *energyBook) recall(body []byte, open func(attemptKey) bool) error {
	var n energyNote
	if err := json.Unmarshal(body, &n); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since, b.idle = cmp.Or(n.Since, b.since), sensible(n.Idle)
	for user, joules := range n.Users {
		b.users[user] = sensible(joules)
	}
	for user, seconds := range n.Held {
		b.held[user] = sensible(seconds)
	}
	for _, k := range n.Attempts {
		if open(k.key()) {
			b.open[k.key()] = &energyLine{joules: sensible(k.Joules)}
		}
	}
	for uuid, gap := range n.GPUs {
		c := b.cards[uuid]
		if c == nil || gap == nil {
			continue
		}
		c.least = sensible(gap.Least)
		if len(gap.On) > 0 {
			c.gap = gap
		}
	}
	return nil
}

// loadEnergy loads the book of an earlier daemon. Unreadable parts are left out.
func (r *Runner) loadEnergy() {
	parents := map[string]string{}
	for id, d := range r.found() {
		parents[string(id)] = d.Parent
	}
	r.energy = newEnergyBook(r.Clock.Now(), parents)
	body, err := r.Journal.Meta(energyKey)
	if err != nil {
		return // no book is stored, or the journal's check reports the error
	}
	err = r.energy.recall(body, func(key attemptKey) bool {
		t, ok := r.state.Task(key.task)
		return ok && t.Alive() != nil && t.Alive().N == key.attempt
	})
	if err != nil {
		r.Log.Warn().Err(err).Msg("the energy that was noted cannot be read; it counts from now on")
	}
}

// storeEnergy stores the book. If that fails, a daemon that is killed loses more of the
// book.
func (r *Runner) storeEnergy() {
	body := r.energy.note(r.Clock.Now())
	if body == nil {
		return
	}
	if err := r.Journal.SetMeta(energyKey, body); err != nil {
		r.energy.redo()
		r.Log.Debug().Err(err).Msg("the energy of the tasks could not be noted")
	}
}

// redo records that the last note was not stored.
func (b *energyBook) redo() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirty = true
}

// energyOf returns the joules that an attempt has used, or 0 if none or unknown.
func (r *Runner) energyOf(rec *Record, attempt int) float64 {
	if joules, ended := rec.Energy[attempt]; ended {
		return joules
	}
	return hundredths(r.energy.of(attemptKey{rec.ID(), attempt}))
}

// view returns the sums over all tasks in API form, or nil if there are none yet.
func (b *energyBook) view() *api.Energy {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.users) == 0 {
		return nil
	}
	v := &api.Energy{Since: b.since.Time(), IdleJ: hundredths(b.idle), Users: map[string]float64{}}
	for user, joules := range b.users {
		v.TasksJ += joules
		v.Users[user] = hundredths(joules)
	}
	v.TasksJ = hundredths(v.TasksJ)
	return v
}

// spend distributes the energy in a sample, and asks the loop for the tasks' activity. If
// the loop has no time, its last answer counts.
func (r *Runner) spend(now units.Instant, samples []gpu.Sample) {
	r.energy.sample(now, samples)
	select {
	case r.queries <- func() { r.energy.told(busyOf(r.state.Crowded())) }:
	default:
	}
}

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
