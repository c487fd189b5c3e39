package mapper

import (
	"encoding/json"
	"flag"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// TestProperties applies random events to a state and checks the invariants after each. The
// machine keeps its own accounts, only from events and decisions, and does not use the state's
// own data.
func TestProperties(t *testing.T) {
	longer(t)
	missing := map[string]bool{}
	for kind := range model.EventDecoders {
		missing[kind] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, ev := range anyLife(t) {
			delete(missing, ev.Kind())
		}
	})
	if testing.Short() { // in so few sequences, not every event occurs
		return
	}
	for kind := range missing {
		t.Errorf("no life has the event %s: give the machine an action for it", kind)
	}
}

// anyLife applies one sequence of events, and returns it.
func anyLife(t *rapid.T) []model.Event {
	m := newMachine(t)
	t.Repeat(map[string]func(*rapid.T){
		"submit":          m.submit,
		"estimate":        m.estimate,
		"more":            m.more,
		"sample":          m.sample,
		"overuse":         m.overuse,
		"paced":           m.paced,
		"victim":          m.victim,
		"hand":            m.hand,
		"start":           m.start,
		"exit":            m.exit,
		"unstarted":       m.unstarted,
		"canary":          m.canary,
		"cancel":          m.cancel,
		"engine":          m.engine,
		"gpus":            m.gpus,
		"configure":       m.configure,
		"pass time":       m.pass,
		"wake":            m.wake,
		"repeat":          m.again,
		"restart":         m.restart,
		"drain":           m.drains,
		"taken in":        m.takenIn,
		"recorded":        m.recorded,
		"removed":         m.removed,
		"hold":            m.holds,
		"touch":           m.touches,
		"recall":          m.recalls,
		"reorder":         m.reorders,
		"change":          m.changes,
		"close":           m.closes,
		"reset":           m.resets,
		"pause":           m.pauses,
		"hosts":           m.findHosts,
		"helpers":         m.booksHelpers,
		"reserve":         m.reserves,
		"unreserve":       m.unreserves,
		"pin":             m.pins,
		"suspend":         m.suspends,
		"bring back":      m.bringsBack,
		"offer":           m.offers,
		"found away":      m.findsAway,
		"devices checked": m.checksDevices,
		"answer":          m.answers,
		"moved":           m.moved,
		"rests":           m.rests,
		"outlasts":        m.outlasts,
		"crowd":           m.crowds,
		"forget":          func(*rapid.T) { m.s.placer.DropCache() },
	})
	m.drains(t)
	m.replays(t)
	m.follows(t)
	return m.past
}

// replays checks that the same events from the beginning give the same decisions and the
// same state, with a cache that was never dropped.
func (m *machine) replays(t *rapid.T) {
	again := New(m.first)
	for i, ev := range m.past {
		if got := journaled(t, again.Step(ev)); !reflect.DeepEqual(got, m.led[i]) {
			t.Fatalf("%T, event %d of %d, led to\n%#v\nand when it was replayed to\n%#v", ev, i, len(m.past), m.led[i], got)
		}
	}
	if got, want := encode(t, again), encode(t, m.s); got != want {
		t.Fatalf("the same %d events led to\n%s\nand when they were replayed to\n%s", len(m.past), want, got)
	}
}

// longer makes the sequences of events longer than rapid's default of 30.
func longer(t *testing.T) {
	if f := flag.Lookup("rapid.steps"); f != nil && f.Value.String() == f.DefValue && !testing.Short() {
		if err := f.Value.Set("60"); err != nil {
			t.Fatal(err)
		}
	}
}

// machine is the state under test with the independent accounts against which it is
// checked.
type machine struct {
	s      *State
	now    units.Instant
	last   model.TaskID
	past   []model.Event         // past events, to be repeated
	led    [][]model.Decision    // the decisions on each of these
	found  map[model.TaskID]bool // tasks of adopted containers, for which no limit was checked
	alarm  units.Instant         // the timer that was set and has not fired, or 0
	copied bool                  // a copy, for which step does not compare clone and snapshot again

	all                []model.GPUInfo // the GPUs of the machines when none is missing
	there              map[model.GPUID]bool
	fault              map[model.GPUID]bool
	alien              map[model.GPUID]units.Bytes // other processes' use
	used               map[model.GPUID]units.Bytes // total use, by the last sample
	first              model.Options               // before the first event
	opt                model.Options
	up                 bool
	live               map[model.TaskID]model.Launch                // launched, not ended, and not suspended
	away               map[model.TaskID]model.Launch                // launched and suspended
	home               map[model.TaskID][]model.Grant               // the grants of each resuming task when it was suspended
	leaving, returning map[model.TaskID]int                         // the attempts that are being suspended, and resumed
	ranFrom            map[model.TaskID]ranFrom                     // when its container began to run, or it resumed
	itself             map[model.TaskID]bool                        // whether the last suspension asked the program to vacate
	offered            map[model.TaskID]int                         // the attempts whose programs vacate on request
	behind             map[model.GPUID]map[model.TaskID]units.Bytes // the residue of suspended tasks, by the last sample
	isAway             model.SuspendedOutOfBand                     // found in this step, or zero
	madeWay            map[model.TaskID]model.TaskID                // the preemptor of each victim that is being suspended
	tries              map[model.TaskID]int                         // attempts so far
	moves              map[model.TaskID]int                         // stops for slowing others down
	shape              map[model.TaskID]model.Request
	open               map[model.TaskID]bool // submitted and not finished
	closed             map[model.TaskID]bool
	born               map[model.TaskID]units.Instant // submitted
	begun              map[model.TaskID]bool          // has had a running container
	ended              map[model.TaskID]model.Phase   // how it ended

	hosts    map[string]model.HostInfo    // known machines
	seenHost map[model.TaskID]units.Bytes // host memory that running tasks use, by the last sample
	lent     map[model.TaskID]units.Bytes // the part of it that is lent to others during suspensions

	kept       []model.Reservation               // not ended
	told       map[model.TaskID]time.Duration    // run times from outputs before the step, because a launch drops them
	helpers    map[[2]string]model.HelpersBooked // by machine and suite
	keptBefore int                               // the number of reservations so far
	shut       map[model.GPUID]units.Instant     // cordoned until then
	broken     map[model.GPUID]string            // until they are reset; the machine's boot at that time
	boots      map[model.GPUID]string            // as last found
	pausedTill units.Instant                     // launching is paused until then
	onHold     map[model.TaskID]bool
	toHold     map[model.TaskID]bool // when they have been requeued

	stirred map[model.GPUID]units.Instant  // time of the last sample in which it was not idle
	touched map[model.TaskID]int           // the attempt that last had memory on its GPUs
	typed   map[model.TaskID]units.Instant // when it began, or somebody last typed
	warned  map[model.TaskID]model.Idle    // the last report

	instead map[model.TaskID]instead       // tasks that carma suspended
	back    map[model.TaskID]units.Instant // when each last resumed
	turn    map[model.TaskID]units.Instant // when the slot of each began, if it began with a resumption
	stays   map[model.TaskID]int           // the attempts that could not be suspended

	launched units.Instant    // the instant of the last launch, or 0 if none
	spacing  time.Duration    // until the next launch is allowed
	onWay    []inflightLaunch // launched and not accepted, as far as it counts
}

// inflightLaunch is an attempt that was launched and not yet accepted.
type inflightLaunch struct {
	Task    model.TaskID
	Attempt int
}

func newMachine(t *rapid.T) *machine {
	m := &machine{
		now: 1, opt: anyOptions(t), up: true,
		all: []model.GPUInfo{
			{ID: "a0", Node: "a", Index: 0, Capacity: 16 * units.GiB}, {ID: "a1", Node: "a", Index: 1, Capacity: 16 * units.GiB},
			{ID: "a2", Node: "a", Index: 2, Capacity: 32 * units.GiB}, {ID: "b0", Node: "b", Index: 0, Capacity: 16 * units.GiB},
			{ID: "b1", Node: "b", Index: 1, Capacity: 24 * units.GiB},
		},
		there: map[model.GPUID]bool{}, fault: map[model.GPUID]bool{}, alien: map[model.GPUID]units.Bytes{}, used: map[model.GPUID]units.Bytes{}, live: map[model.TaskID]model.Launch{}, away: map[model.TaskID]model.Launch{}, leaving: map[model.TaskID]int{}, returning: map[model.TaskID]int{}, home: map[model.TaskID][]model.Grant{}, ranFrom: map[model.TaskID]ranFrom{}, madeWay: map[model.TaskID]model.TaskID{}, offered: map[model.TaskID]int{}, itself: map[model.TaskID]bool{}, behind: map[model.GPUID]map[model.TaskID]units.Bytes{}, tries: map[model.TaskID]int{}, moves: map[model.TaskID]int{},
		shape: map[model.TaskID]model.Request{}, open: map[model.TaskID]bool{}, closed: map[model.TaskID]bool{},
		born: map[model.TaskID]units.Instant{}, seenHost: map[model.TaskID]units.Bytes{}, lent: map[model.TaskID]units.Bytes{}, begun: map[model.TaskID]bool{}, ended: map[model.TaskID]model.Phase{}, found: map[model.TaskID]bool{},
		instead: map[model.TaskID]instead{}, back: map[model.TaskID]units.Instant{}, turn: map[model.TaskID]units.Instant{}, stays: map[model.TaskID]int{},
		stirred: map[model.GPUID]units.Instant{}, touched: map[model.TaskID]int{}, typed: map[model.TaskID]units.Instant{}, warned: map[model.TaskID]model.Idle{},
		shut: map[model.GPUID]units.Instant{}, broken: map[model.GPUID]string{}, boots: map[model.GPUID]string{}, helpers: map[[2]string]model.HelpersBooked{}, onHold: map[model.TaskID]bool{}, toHold: map[model.TaskID]bool{},
	}
	for i := range m.all {
		m.all[i].Link = rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "NVLink")
		m.all[i].Socket = rapid.SampledFrom([]string{"", "0", "1"}).Draw(t, "NUMA node")
		m.all[i].Suspend = rapid.SampledFrom([]model.SuspendKind{model.SuspendMove, model.SuspendMove, model.SuspendHere, model.SuspendNever}).Draw(t, "suspends")
		m.all[i].Model = rapid.SampledFrom([]string{"H100", "H100", "A100", ""}).Draw(t, "model")
		m.all[i].MIG = rapid.IntRange(0, 5).Draw(t, "is a part of a card") == 5
	}
	m.first, m.s = m.opt, New(m.opt)
	m.find(t, m.all)
	return m
}

// step applies an event to the state, to a clone of it and to one read from its snapshot;
// the three must agree in everything.
func (m *machine) step(t *rapid.T, ev model.Event) {
	kind, body, err := model.EncodeEvent(ev)
	if err != nil {
		t.Fatalf("encode %#v: %v", ev, err)
	}
	decoded, err := model.DecodeEvent(kind, body)
	if err != nil || !reflect.DeepEqual(decoded, ev) {
		t.Fatalf("event\n%#v came back as\n%#v, %v", ev, decoded, err)
	}
	m.noClaimAfter(ev)
	if m.copied {
		m.apply(t, ev)
		return
	}
	clone, restored := m.s.Clone(), reload(t, m.s)
	decisions := m.apply(t, ev)
	after := encode(t, m.s)
	if got := clone.Step(decoded); !reflect.DeepEqual(got, decisions) {
		t.Fatalf("%#v\nled to      %+v\nin a clone: %+v", ev, decisions, got)
	}
	if got := restored.Step(ev); !reflect.DeepEqual(got, decisions) {
		t.Fatalf("%#v\nled to               %+v\nafter a restart: %+v", ev, decisions, got)
	}
	if got := encode(t, m.s); got != after {
		t.Fatalf("%#v to a clone changed the state from\n%s\nto\n%s", ev, after, got)
	}
	if got := encode(t, clone); got != after {
		t.Fatalf("%#v\nled to the state\n%s\nin a clone\n%s", ev, after, got)
	}
	if got := encode(t, restored); got != after {
		t.Fatalf("%#v\nled to the state\n%s\nafter a restart\n%s", ev, after, got)
	}
}

// apply makes the step, keeps the accounts and checks the results.
func (m *machine) apply(t *rapid.T, ev model.Event) []model.Decision {
	waiting, now := m.waiting(), m.s.Now()
	m.told = map[model.TaskID]time.Duration{}
	for _, task := range m.s.TaskList() {
		m.told[task.ID] = task.Pace.Whole
	}
	decisions := m.s.Step(ev)
	if m.s.Now() < now {
		t.Fatalf("time ran back from %d to %d", now, m.s.Now())
	}
	m.past, m.led = append(m.past, ev), append(m.led, journaled(t, decisions))
	m.book(t, ev, decisions)
	m.check(t, waiting)
	return decisions
}

func encode(t *rapid.T, s *State) string {
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func reload(t *rapid.T, s *State) *State {
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	restored := &State{}
	if err := json.Unmarshal(b, restored); err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	return restored
}

// drains checks that every task ends if from now on nothing fails and every attempt succeeds.
// The only events are exits and timers, so this finds a lost timer. It runs on a copy.
func (m *machine) drains(t *rapid.T) {
	before := encode(t, m.s)
	c := *m
	c.s, c.copied = m.s.Clone(), true
	c.there, c.fault, c.alien, c.used = maps.Clone(m.there), maps.Clone(m.fault), maps.Clone(m.alien), maps.Clone(m.used)
	c.live, c.tries, c.moves, c.shape = maps.Clone(m.live), maps.Clone(m.tries), maps.Clone(m.moves), maps.Clone(m.shape)
	c.open, c.closed, c.past = maps.Clone(m.open), maps.Clone(m.closed), slices.Clone(m.past)
	c.led, c.onWay = slices.Clone(m.led), slices.Clone(m.onWay)
	c.kept, c.helpers = slices.Clone(m.kept), maps.Clone(m.helpers)
	c.stirred, c.typed, c.warned = maps.Clone(m.stirred), maps.Clone(m.typed), maps.Clone(m.warned)
	c.broken, c.boots = maps.Clone(m.broken), maps.Clone(m.boots)
	c.shut, c.onHold, c.toHold = maps.Clone(m.shut), maps.Clone(m.onHold), maps.Clone(m.toHold)
	c.away, c.leaving, c.returning, c.home = maps.Clone(m.away), maps.Clone(m.leaving), maps.Clone(m.returning), maps.Clone(m.home)
	c.instead, c.back, c.turn, c.stays = maps.Clone(m.instead), maps.Clone(m.back), maps.Clone(m.turn), maps.Clone(m.stays)
	c.seenHost, c.lent = maps.Clone(m.seenHost), maps.Clone(m.lent)
	c.born, c.begun, c.ended = maps.Clone(m.born), maps.Clone(m.begun), maps.Clone(m.ended)
	c.ranFrom, c.madeWay = maps.Clone(m.ranFrom), maps.Clone(m.madeWay)
	c.offered, c.itself, c.behind = maps.Clone(m.offered), maps.Clone(m.itself), maps.Clone(m.behind)
	c.restore(t)
	for n := 0; len(c.open) > 0; n++ {
		if n > 1000 {
			t.Fatalf("tasks %v have not ended", slices.Sorted(maps.Keys(c.open)))
		}
		if c.finishMoves(t) {
			continue
		}
		if id, ok := c.any(t, model.Launching, model.Running, model.Stopping); ok {
			c.step(t, model.Exited{At: c.now, Task: id, Attempt: c.tries[id], Class: model.ExitOK})
			continue
		}
		if c.alarm == 0 {
			t.Fatalf("tasks %v wait, nothing runs and no wake-up is asked for", slices.Sorted(maps.Keys(c.open)))
		}
		c.now = max(c.now, c.alarm)
		c.step(t, model.TimerFired{At: c.now})
	}
	if got := c.s.Tasks(); len(got) > 0 || c.s.QueueLen() > 0 {
		t.Fatalf("left over: %+v", got)
	}
	for _, g := range c.s.GPUs() {
		if g.Reserved != 0 || len(g.Residents) > 0 {
			t.Fatalf("left over: %+v", g)
		}
	}
	if left := c.s.Hosts(); len(left) > 0 {
		t.Fatalf("left over: %+v", left)
	}
	if after := encode(t, m.s); after != before {
		t.Fatalf("what became of a clone changed the state from\n%s\nto\n%s", before, after)
	}
}

// restore makes everything healthy, and gives up requests that can never be met because
// they came when there was no GPU to compare them with. A request changed by recovery can
// always be met, under the headroom at that time.
func (m *machine) restore(t *rapid.T) {
	m.find(t, m.all)
	m.hosts = map[string]model.HostInfo{}
	m.step(t, model.HostsFound{At: m.now})
	m.opt.Headroom = 0
	m.opt.QuotaTasks, m.opt.QuotaGPUs, m.opt.QuotaMemory, m.opt.Slot, m.opt.Quotas = 0, 0, 0, 0, nil
	m.step(t, model.Configured{At: m.now, Options: m.opt, Format: model.DecisionFormat})
	var well []model.GPUSample
	for _, g := range m.all {
		well = append(well, model.GPUSample{ID: g.ID})
		m.alien[g.ID], m.used[g.ID], m.fault[g.ID] = 0, 0, false
	}
	m.step(t, model.Sampled{At: m.now, GPUs: well})
	m.up = true
	m.step(t, model.EngineChanged{At: m.now, Up: true})
	m.step(t, model.LaunchingPaused{At: m.now})
	m.step(t, model.GPUsCordoned{At: m.now, GPUs: slices.Collect(maps.Keys(m.shut))})
	m.step(t, model.GPUsReset{At: m.now, GPUs: slices.Collect(maps.Keys(m.broken))})
	for _, o := range m.s.Hosts() {
		for _, h := range o.Helpers {
			m.step(t, model.HelpersBooked{At: m.now, Node: o.Node, Suite: h.Suite})
		}
	}
	for _, r := range slices.Clone(m.kept) {
		m.step(t, model.Unreserved{At: m.now, ID: r.ID})
	}
	for _, task := range m.s.Tasks() {
		m.step(t, model.HoldChanged{At: m.now, Task: task.ID})
		m.step(t, model.Pinned{At: m.now, Task: task.ID})
		m.step(t, model.ResumeAsked{At: m.now, Task: task.ID})
		if task.Phase == model.Estimating {
			m.step(t, model.Estimated{At: m.now, Task: task.ID, Estimate: model.Estimate{Memory: units.GiB}})
		} else if now, ok := m.s.Task(task.ID); ok && now.Alive() != nil {
			continue // it has run
		} else if err := m.s.Check(task.Request, task.Estimate); err != nil {
			m.step(t, model.Cancel{At: m.now, Task: task.ID})
		}
	}
}
