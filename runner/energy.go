package runner

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper/energy"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// energyBook shares the energy of the GPUs among the attempts with running containers on
// them. It reports no errors, but leaves out impossible figures.
type energyBook struct {
	mu    sync.Mutex
	cards map[string]*energyPage     // by UUID
	open  map[attemptKey]*energyLine // attempts with joules in no record yet
	runs  map[string][]attemptKey    // the attempts in open with running containers on each GPU, in order
	busy  map[string]map[model.TaskID]float64
	since units.Instant      // when the sums below were 0
	users map[string]float64 // joules, of ended tasks too
	held  map[string]float64 // GPU-seconds of each user's tasks, of ended ones too
	idle  float64            // joules of GPUs without tasks
	dirty bool               // the book changed since it was last stored
}

// energyLine is the energy account of an attempt.
type energyLine struct {
	user   string
	gpus   []string
	joules float64
	runs   bool // its container runs, as far as this daemon knows
	stayed bool // it has run since before this daemon started
	// counted is the time up to which its GPU-seconds are in the book.
	counted units.Instant
}

// energyPage is the energy account of a GPU. When a task starts or ends between two
// samples, the energy so far is shared out by the power draw. The next sample shares out
// the rest.
type energyPage struct {
	parent string                   // the card of a MIG instance, else the GPU itself
	at     units.Instant            // the time up to which joules are shared out, or 0 before the first sample
	joules float64                  // the source's counter in the last sample
	watts  float64                  // power draw in the last sample
	ahead  float64                  // joules shared out since that the counter has not shown
	least  float64                  // the lowest draw seen without tasks, or 0
	own    float64                  // the card's own counter, or 0 if it has none
	timed  map[model.TaskID]float64 // kernel time of each task in the last sample
	gap    *energyGap               // time without a daemon that is not accounted yet, or nil
}

const (
	// longestDraw is the longest time for which one draw counts, because the clock may
	// have been set.
	longestDraw = 10 * time.Minute
	// mostDraw, in watts, bounds plausible readings of a card's own counter.
	mostDraw = 10_000.0
)

// newEnergyBook returns an empty book. parents are the cards of MIG instances.
func newEnergyBook(now units.Instant, parents map[string]string) *energyBook {
	b := &energyBook{cards: map[string]*energyPage{}, open: map[attemptKey]*energyLine{}, runs: map[string][]attemptKey{}, users: map[string]float64{}, held: map[string]float64{}, since: now}
	for uuid, parent := range parents {
		b.cards[uuid] = &energyPage{parent: cmp.Or(parent, uuid)}
	}
	return b
}

// sit adds an attempt to the running attempts of its GPUs, and rise removes it.
func (b *energyBook) sit(key attemptKey, line *energyLine) {
	for _, uuid := range line.gpus {
		at, here := slices.BinarySearchFunc(b.runs[uuid], key, attemptKey.compare)
		if !here {
			b.runs[uuid] = slices.Insert(b.runs[uuid], at, key)
		}
	}
}

func (b *energyBook) rise(key attemptKey, line *energyLine) {
	for _, uuid := range line.gpus {
		on := slices.DeleteFunc(b.runs[uuid], func(k attemptKey) bool { return k == key })
		if b.runs[uuid] = on; len(on) == 0 {
			delete(b.runs, uuid)
		}
	}
}

func (k attemptKey) compare(o attemptKey) int {
	return cmp.Or(cmp.Compare(k.task, o.task), k.attempt-o.attempt)
}

// join records that an attempt's container runs. stayed is set if it has run since before
// this daemon started.
func (b *energyBook) join(now units.Instant, key attemptKey, user string, gpus []string, stayed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now, gpus)
	line := b.open[key]
	if line == nil {
		line = &energyLine{}
		b.open[key] = line
	}
	b.count(now, line)
	b.rise(key, line)
	line.user, line.gpus, line.runs, line.stayed, line.counted = user, gpus, true, stayed, now
	b.sit(key, line)
	if stayed {
		return
	}
	for _, uuid := range gpus {
		if c := b.cards[uuid]; c != nil {
			c.gap = nil // the users of the energy are unknown
		}
	}
}

// leave records that an attempt's container has ended, and returns its joules so far.
func (b *energyBook) leave(now units.Instant, key attemptKey) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.open[key]
	if line == nil {
		return 0
	}
	b.advance(now, line.gpus)
	b.count(now, line)
	line.runs = false
	b.rise(key, line)
	for _, c := range b.cards {
		if c.gap.has(key) {
			c.gap = nil
		}
	}
	return line.joules
}

// forget drops an attempt after its joules are in its record.
func (b *energyBook) forget(key attemptKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if line := b.open[key]; line != nil {
		b.rise(key, line)
		delete(b.open, key)
	}
}

// of returns the joules used by an attempt that is not in a record yet.
func (b *energyBook) of(key attemptKey) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if line := b.open[key]; line != nil {
		return line.joules
	}
	return 0
}

// told stores the SM activity that the mapper attributes to each task on the GPUs with
// several tasks.
func (b *energyBook) told(busy map[string]map[model.TaskID]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = busy
}

// sample distributes the energy that the GPUs have used since the last sample.
func (b *energyBook) sample(now units.Instant, samples []gpu.Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := map[string]bool{} // cards with tasks or processes
	for i := range samples {
		s := &samples[i]
		c := b.page(s.UUID)
		used[c.parent] = used[c.parent] || len(s.Processes) > 0 || len(b.on(s.UUID)) > 0
	}
	for i := range samples {
		s := &samples[i]
		c := b.page(s.UUID)
		watts := sensible(s.PowerW)
		if !used[c.parent] && s.Fault == "" && watts > 0 && (c.least == 0 || watts < c.least) {
			c.least = watts
		}
		b.read(now, s, c)
		c.at, c.watts, c.joules, c.own = now, watts, sensible(s.EnergyJ), sensible(s.CounterJ)
	}
}

// read distributes the energy that a GPU has used since the last sample.
func (b *energyBook) read(now units.Instant, s *gpu.Sample, c *energyPage) {
	on := b.on(s.UUID)
	c.timed = timesIn(s)
	switch {
	case c.gap != nil:
		if joules, seconds, over := b.gone(now, s, c.gap, on); over {
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
	if grown -= c.ahead; grown < 0 { // more was shared out than was used
		c.ahead = -grown
		return
	}
	c.ahead = 0
	b.share(s.UUID, on, grown, drawn(c.at, now))
}

// advance distributes by power draw the energy that some GPUs have used since the last
// sample, before a task starts or ends.
func (b *energyBook) advance(now units.Instant, gpus []string) {
	for _, uuid := range gpus {
		c := b.cards[uuid]
		if c == nil || c.at == 0 || c.gap != nil || now <= c.at {
			continue
		}
		seconds := drawn(c.at, now)
		b.share(uuid, b.on(uuid), c.watts*seconds, seconds)
		c.ahead, c.at = c.ahead+c.watts*seconds, now
	}
}

// drawn returns for how many seconds a draw counts.
func drawn(from, to units.Instant) float64 {
	return min(max(0, to.Sub(from)), longestDraw).Seconds()
}

// share adds a GPU's energy use in some seconds to the accounts of attempts.
func (b *energyBook) share(uuid string, on []attemptKey, joules, seconds float64) {
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
		activity[i] = busy[key.task]
	}
	for i, part := range energy.Shares(nil, joules, b.cards[uuid].least*seconds, activity) {
		line := b.open[on[i]]
		line.joules += part
		b.users[line.user] += part
	}
	b.dirty = true
}

// on returns the attempts with running containers on a GPU, in order. The caller must not
// keep the result.
func (b *energyBook) on(uuid string) []attemptKey { return b.runs[uuid] }

func (b *energyBook) page(uuid string) *energyPage {
	c := b.cards[uuid]
	if c == nil {
		c = &energyPage{parent: uuid}
		b.cards[uuid] = c
	}
	return c
}

// sensible returns a usable reading, or 0 for any other value.
func sensible(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// withEnergy returns the record with the joules of an attempt, if there are any.
func (r *Record) withEnergy(attempt int, joules float64) *Record {
	if joules <= 0 {
		return r
	}
	n := *r
	n.Energy = maps.Clone(r.Energy)
	if n.Energy == nil {
		n.Energy = map[int]float64{}
	}
	n.Energy[attempt] = hundredths(joules)
	return &n
}
