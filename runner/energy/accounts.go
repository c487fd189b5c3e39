package energy

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper/energy"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// Accounts shares the energy of the GPUs among the attempts with running containers on them. It
// ignores impossible readings, and returns no errors.
type Accounts struct {
	mu    sync.Mutex
	cards map[string]*gpuAccount              // by UUID
	open  map[gpu.AttemptKey]*attemptAccount  // attempts with joules in no record yet
	runs  map[string][]gpu.AttemptKey         // the attempts in open with running containers on each GPU, in order
	busy  map[string]map[model.TaskID]float64 // SM activity of tasks by GPU, see setActivity
	since units.Instant                       // beginning of the sums below
	users map[string]float64                  // joules, of ended tasks too
	held  map[string]float64                  // GPU-seconds of each user's tasks, of ended ones too
	idle  float64                             // joules of GPUs without tasks
	dirty bool                                // they changed since they were last stored
}

// attemptAccount is the energy account of an attempt.
type attemptAccount struct {
	user   string
	gpus   []string
	joules float64
	runs   bool // this daemon knows that its container runs
	stayed bool // it has run since before this daemon started
	// counted is the time up to which its GPU-seconds are counted.
	counted units.Instant
}

// gpuAccount is the energy account of a GPU. When a task starts or ends between two samples,
// the energy until then is estimated from the power draw and distributed. The next sample
// distributes the rest.
type gpuAccount struct {
	parent string                   // the card of a MIG instance, else the GPU itself
	at     units.Instant            // the time up to which energy is distributed, or 0 before the first sample
	joules float64                  // the source's counter in the last sample
	watts  float64                  // power draw in the last sample
	ahead  float64                  // joules that were distributed before the counter showed them
	least  float64                  // the lowest draw seen without tasks, or 0
	own    float64                  // the card's own counter, or 0 if it has none
	timed  map[model.TaskID]float64 // kernel time of each task in the last sample
	gap    *gap                     // time without a daemon that is not accounted yet, or nil
}

const (
	// longestDraw is the longest time for which one draw counts, because the clock may
	// have been set.
	longestDraw = 10 * time.Minute
	// mostDraw, in watts, bounds plausible readings of a card's own counter.
	mostDraw = 10_000.0
)

// New returns empty accounts at an instant. parents are the cards of MIG instances.
func New(now units.Instant, parents map[string]string) *Accounts {
	b := &Accounts{cards: map[string]*gpuAccount{}, open: map[gpu.AttemptKey]*attemptAccount{}, runs: map[string][]gpu.AttemptKey{}, users: map[string]float64{}, held: map[string]float64{}, since: now}
	for uuid, parent := range parents {
		b.cards[uuid] = &gpuAccount{parent: cmp.Or(parent, uuid)}
	}
	return b
}

// addRun adds an attempt to the running attempts of its GPUs.
func (b *Accounts) addRun(key gpu.AttemptKey, account *attemptAccount) {
	for _, uuid := range account.gpus {
		at, here := slices.BinarySearchFunc(b.runs[uuid], key, gpu.AttemptKey.Compare)
		if !here {
			b.runs[uuid] = slices.Insert(b.runs[uuid], at, key)
		}
	}
}

// removeRun removes an attempt from the running attempts of its GPUs.
func (b *Accounts) removeRun(key gpu.AttemptKey, account *attemptAccount) {
	for _, uuid := range account.gpus {
		on := slices.DeleteFunc(b.runs[uuid], func(k gpu.AttemptKey) bool { return k == key })
		if b.runs[uuid] = on; len(on) == 0 {
			delete(b.runs, uuid)
		}
	}
}

// Start records that an attempt's container runs. stayed is set if it has run since before
// this daemon started.
func (b *Accounts) Start(now units.Instant, key gpu.AttemptKey, user string, gpus []string, stayed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now, gpus)
	account := b.open[key]
	if account == nil {
		account = &attemptAccount{}
		b.open[key] = account
	}
	b.countSeconds(now, account)
	b.removeRun(key, account)
	account.user, account.gpus, account.runs, account.stayed, account.counted = user, gpus, true, stayed, now
	b.addRun(key, account)
	if stayed {
		return
	}
	for _, uuid := range gpus {
		if c := b.cards[uuid]; c != nil {
			c.gap = nil // it is unknown which attempts used the energy
		}
	}
}

// Stop records that an attempt's container has ended, and returns its joules so far.
func (b *Accounts) Stop(now units.Instant, key gpu.AttemptKey) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	account := b.open[key]
	if account == nil {
		return 0
	}
	b.advance(now, account.gpus)
	b.countSeconds(now, account)
	account.runs = false
	b.removeRun(key, account)
	for _, c := range b.cards {
		if c.gap.has(key) {
			c.gap = nil
		}
	}
	return account.joules
}

// Forget drops an attempt after its joules are in its record.
func (b *Accounts) Forget(key gpu.AttemptKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if account := b.open[key]; account != nil {
		b.removeRun(key, account)
		delete(b.open, key)
	}
}

// Joules returns the joules used by an attempt since its start, or 0 if Forget has dropped it.
func (b *Accounts) Joules(key gpu.AttemptKey) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if account := b.open[key]; account != nil {
		return account.joules
	}
	return 0
}

// setActivity stores the SM activity that the mapper attributes to each task on the GPUs with
// several tasks.
func (b *Accounts) setActivity(busy map[string]map[model.TaskID]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = busy
}

// Sample distributes the energy that the GPUs have used since the last sample.
func (b *Accounts) Sample(now units.Instant, samples []gpu.Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := map[string]bool{} // cards with tasks or processes
	for i := range samples {
		s := &samples[i]
		c := b.gpu(s.UUID)
		used[c.parent] = used[c.parent] || len(s.Processes) > 0 || len(b.running(s.UUID)) > 0
	}
	for i := range samples {
		s := &samples[i]
		c := b.gpu(s.UUID)
		watts := sensible(s.PowerW)
		if !used[c.parent] && s.Fault == "" && watts > 0 && (c.least == 0 || watts < c.least) {
			c.least = watts
		}
		b.shareCounter(now, s, c)
		c.at, c.watts, c.joules, c.own = now, watts, sensible(s.EnergyJ), sensible(s.CounterJ)
	}
}

// shareCounter distributes the energy that a GPU has used since the last sample.
func (b *Accounts) shareCounter(now units.Instant, s *gpu.Sample, c *gpuAccount) {
	on := b.running(s.UUID)
	c.timed = timesIn(s)
	switch {
	case c.gap != nil:
		if joules, seconds, over := b.overGap(now, s, c.gap, on); over {
			c.gap, c.ahead = nil, 0
			b.share(s.UUID, on, joules, seconds)
		}
		return
	case c.at == 0:
		return
	}
	grown := sensible(s.EnergyJ) - c.joules
	if grown < 0 { // the counter was reset
		grown = c.watts*drawn(c.at, now) + c.ahead
	}
	if grown -= c.ahead; grown < 0 { // more energy was distributed than used
		c.ahead = -grown
		return
	}
	c.ahead = 0
	b.share(s.UUID, on, grown, drawn(c.at, now))
}

// advance distributes by power draw the energy that some GPUs have used since the last
// sample, before a task starts or ends.
func (b *Accounts) advance(now units.Instant, gpus []string) {
	for _, uuid := range gpus {
		c := b.cards[uuid]
		if c == nil || c.at == 0 || c.gap != nil || now <= c.at {
			continue
		}
		seconds := drawn(c.at, now)
		b.share(uuid, b.running(uuid), c.watts*seconds, seconds)
		c.ahead, c.at = c.ahead+c.watts*seconds, now
	}
}

// drawn returns the number of seconds for which a power draw counts.
func drawn(from, to units.Instant) float64 {
	return min(max(0, to.Sub(from)), longestDraw).Seconds()
}

// share adds a GPU's energy use in some seconds to the accounts of attempts.
func (b *Accounts) share(uuid string, on []gpu.AttemptKey, joules, seconds float64) {
	if len(on) == 0 {
		b.idle += joules
		return
	}
	activity := make([]float64, len(on))
	busy := b.busy[uuid]
	if len(busy) == 0 {
		busy = b.cards[uuid].timed
	}
	for i, key := range on {
		activity[i] = busy[key.Task]
	}
	for i, part := range energy.Shares(nil, joules, b.cards[uuid].least*seconds, activity) {
		account := b.open[on[i]]
		account.joules += part
		b.users[account.user] += part
	}
	b.dirty = true
}

// running returns the attempts with running containers on a GPU, in order. The caller must not
// keep the result.
func (b *Accounts) running(uuid string) []gpu.AttemptKey { return b.runs[uuid] }

// gpu returns the account of a GPU, which may be new.
func (b *Accounts) gpu(uuid string) *gpuAccount {
	c := b.cards[uuid]
	if c == nil {
		c = &gpuAccount{parent: uuid}
		b.cards[uuid] = c
	}
	return c
}

// sensible returns v if it is a plausible reading, otherwise 0.
func sensible(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// timesIn returns the share of time in which kernels of each task ran, or nil if the sample
// lacks it for one task or more.
func timesIn(s *gpu.Sample) map[model.TaskID]float64 {
	of := map[model.TaskID]float64{}
	for _, p := range s.Processes {
		if p.Task != 0 && p.Timed {
			of[p.Task] += p.Active
		}
	}
	for _, p := range s.Processes {
		if _, known := of[p.Task]; p.Task != 0 && !known {
			return nil
		}
	}
	return of
}
