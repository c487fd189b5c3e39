package energy

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
)

// saved is the stored form of the accounts in the journal.
type saved struct {
	At       units.Instant      `json:"at"`
	Since    units.Instant      `json:"since"`
	Users    map[string]float64 `json:"users,omitempty"`
	Held     map[string]float64 `json:"gpu_seconds,omitempty"`
	Idle     float64            `json:"idle,omitempty"`
	Attempts []savedAttempt     `json:"attempts,omitempty"`
	GPUs     map[string]*gap    `json:"gpus,omitempty"`
}

// savedAttempt holds the joules of an attempt that are not in a record yet.
type savedAttempt struct {
	Task    model.TaskID `json:"task"`
	Attempt int          `json:"attempt"`
	Joules  float64      `json:"joules,omitempty"`
}

func (k savedAttempt) key() gpu.AttemptKey { return gpu.AttemptKey{Task: k.Task, Attempt: k.Attempt} }

// gap is the state of a GPU when a daemon ended.
type gap struct {
	At    units.Instant  `json:"at,omitempty"`
	Own   float64        `json:"own,omitempty"`   // the card's own counter in joules, or 0 if it has none
	Least float64        `json:"least,omitempty"` // the lowest draw that was seen without tasks
	On    []savedAttempt `json:"on,omitempty"`    // the attempts there; their joules do not count
}

func (g *gap) has(key gpu.AttemptKey) bool {
	return g != nil && slices.ContainsFunc(g.On, func(k savedAttempt) bool { return k.key() == key })
}

// overGap returns a GPU's energy use since an earlier daemon read its counter. The energy is
// shared among the attempts that ran there all the time, if no attempt started or ended.
// Otherwise it belongs to nobody, and joules is 0. over is false while this is not
// decided.
func (b *Accounts) overGap(now units.Instant, s *gpu.Sample, g *gap, on []gpu.AttemptKey) (joules, seconds float64, over bool) {
	for _, k := range g.On {
		switch account := b.open[k.key()]; {
		case account == nil || account.runs && !account.stayed:
			return 0, 0, true
		case !account.runs:
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

// save returns the accounts for the journal, or nil if nothing changed since the last save.
func (b *Accounts) save(now units.Instant) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirty {
		return nil
	}
	b.countAllSeconds(now)
	b.dirty = false
	n := saved{At: now, Since: b.since, Users: maps.Clone(b.users), Held: maps.Clone(b.held), Idle: Hundredths(b.idle), GPUs: map[string]*gap{}}
	for user, joules := range n.Users {
		n.Users[user] = Hundredths(joules)
	}
	for key, account := range b.open {
		n.Attempts = append(n.Attempts, savedAttempt{key.Task, key.Attempt, Hundredths(account.joules)})
	}
	slices.SortFunc(n.Attempts, func(a, b savedAttempt) int { return cmp.Or(cmp.Compare(a.Task, b.Task), a.Attempt-b.Attempt) })
	for uuid, c := range b.cards {
		left := &gap{At: c.at, Own: c.own}
		for _, key := range b.running(uuid) {
			left.On = append(left.On, savedAttempt{Task: key.Task, Attempt: key.Attempt})
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

// Load continues from what save returned. open reports whether an attempt is in no record yet.
func (b *Accounts) Load(body []byte, open func(gpu.AttemptKey) bool) error {
	var n saved
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
			b.open[k.key()] = &attemptAccount{joules: sensible(k.Joules)}
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

// markUnsaved records that what save returned was not stored.
func (b *Accounts) markUnsaved() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirty = true
}

// View returns the sums over all tasks in API form, or nil if there are none yet.
func (b *Accounts) View() *api.Energy {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.users) == 0 {
		return nil
	}
	v := &api.Energy{Since: b.since.Time(), IdleJ: Hundredths(b.idle), Users: map[string]float64{}}
	for user, joules := range b.users {
		v.TasksJ += joules
		v.Users[user] = Hundredths(joules)
	}
	v.TasksJ = Hundredths(v.TasksJ)
	return v
}

// Hundredths rounds to two decimals.
func Hundredths(v float64) float64 { return math.Round(v*100) / 100 }
