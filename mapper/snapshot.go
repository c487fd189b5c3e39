package mapper

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// snapshot is a state's form on disk.
type snapshot struct {
	Format     int                      `json:"format"`
	Decisions  int                      `json:"decisions,omitempty"` // DecisionFormat
	Now        units.Instant            `json:"now"`
	Options    model.Options            `json:"options"`
	GPUs       []*model.GPU             `json:"gpus"`
	Hosts      []*model.Host            `json:"hosts,omitempty"`
	Tasks      []*model.Task            `json:"tasks"`
	LastID     model.TaskID             `json:"last_id"`
	EngineDown model.Reason             `json:"engine_down,omitzero"`
	Sick       *model.Breaker           `json:"sick,omitempty"`
	Complaints *complaints              `json:"complaints,omitempty"`
	Canary     canary                   `json:"canary,omitzero"`
	Full       []*model.Breaker         `json:"full,omitempty"`
	Paused     *model.Cordon            `json:"paused,omitempty"`
	Reserved   []*model.Reservation     `json:"reserved,omitempty"`
	LastRes    int                      `json:"last_reservation,omitempty"`
	Ring       int                      `json:"ring,omitempty"`
	Kept       headReservation          `json:"hold"`
	History    history                  `json:"history,omitempty"`
	Pairs      pairs                    `json:"pairs,omitzero"`
	Growth     memoryGrowth             `json:"growth,omitzero"`
	Told       declaredError            `json:"told,omitzero"`
	Guesses    map[string]time.Duration `json:"guesses,omitempty"`
	Population classCounts              `json:"population,omitzero"`
	Users      []*user                  `json:"users,omitempty"`
	UsersAt    units.Instant            `json:"users_at,omitempty"`
	FairTick   units.Instant            `json:"fair_tick,omitempty"`
	NotBefore  units.Instant            `json:"not_before,omitempty"`
	Handing    []inflightLaunch         `json:"handing,omitempty"`
	Again      units.Instant            `json:"again,omitempty"`
	Deadlines  []timer                  `json:"deadlines,omitempty"`
	Wake       units.Instant            `json:"wake,omitempty"`
	Dirty      bool                     `json:"dirty,omitempty"`
	Reach      [2]int                   `json:"reach"`
}

// snapshotFormat is the format that this version writes. It reads all formats from 1 on:
// in format 1 reasons were sentences.
const snapshotFormat = 2

// MarshalJSON writes the whole state; UnmarshalJSON restores an equal one.
func (s *State) MarshalJSON() ([]byte, error) {
	snap := snapshot{
		Format: snapshotFormat, Decisions: s.format, Now: s.now, Options: s.opt, GPUs: s.gpus, Hosts: s.hosts, LastID: s.lastID,
		EngineDown: s.breakers.engineDown, Sick: s.breakers.engineBreaker, Complaints: s.breakers.complaints, Canary: s.breakers.canary, Full: s.breakers.namespaceBreakers, Paused: s.paused, Reserved: s.queue.reservations, LastRes: s.queue.lastReservation, Ring: s.ring, Kept: s.queue.head, History: s.predictor.history, Pairs: s.predictor.pairs, Growth: s.predictor.growth, Told: s.predictor.declaredError, Guesses: s.predictor.guess, Population: s.predictor.classCounts, NotBefore: s.notBefore, Handing: s.inflight, Again: s.again, Deadlines: s.timers, Wake: s.wake,
		Dirty: s.dirty, Reach: s.queue.reach, Users: s.users.all, UsersAt: s.users.at, FairTick: s.users.tick,
	}
	snap.Tasks = make([]*model.Task, 0, len(s.tasks))
	for _, t := range s.tasks {
		snap.Tasks = append(snap.Tasks, t)
	}
	slices.SortFunc(snap.Tasks, func(a, b *model.Task) int { return cmp.Compare(a.ID, b.ID) })
	return json.Marshal(snap)
}

// UnmarshalJSON replaces the state by one that MarshalJSON wrote. It rejects an
// inconsistent snapshot and then leaves the state unchanged.
func (s *State) UnmarshalJSON(b []byte) error {
	var snap snapshot
	if err := json.Unmarshal(b, &snap); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if snap.Format < 1 || snap.Format > snapshotFormat {
		return fmt.Errorf("snapshot has format %d, this carma reads 1 to %d", snap.Format, snapshotFormat)
	}
	if err := Validate(snap.Options); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	n, err := snap.state()
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	*s = *n
	return nil
}

// state builds the state that a snapshot describes.
func (snap *snapshot) state() (*State, error) {
	n := New(snap.Options)
	n.now, n.lastID, n.breakers.engineDown, n.format = snap.Now, snap.LastID, snap.EngineDown, snap.Decisions
	n.breakers.engineBreaker, n.breakers.namespaceBreakers, n.paused = snap.Sick, snap.Full, snap.Paused
	n.breakers.complaints, n.breakers.canary = snap.Complaints, snap.Canary
	if !validFull(n.breakers.namespaceBreakers) {
		return nil, fmt.Errorf("a full namespace is there twice, or is not tested again")
	}
	for _, r := range snap.Reserved {
		if r == nil || r.ID < 1 || r.ID > snap.LastRes || len(r.GPUs) == 0 {
			return nil, fmt.Errorf("a reservation is empty or has a number that was not given")
		}
	}
	n.queue.reservations, n.queue.lastReservation = snap.Reserved, snap.LastRes
	n.queue.head, n.timers, n.wake, n.dirty, n.queue.reach = snap.Kept, snap.Deadlines, snap.Wake, snap.Dirty, snap.Reach
	heap.Init(&n.timers)
	n.notBefore, n.inflight, n.again = snap.NotBefore, snap.Handing, snap.Again
	n.predictor.history, n.predictor.pairs, n.predictor.growth, n.predictor.declaredError, n.predictor.classCounts = snap.History, snap.Pairs, snap.Growth, snap.Told, snap.Population.clone()
	if err := n.predictor.history.audit(); err != nil {
		return nil, err
	}
	if n.predictor.guess = snap.Guesses; n.predictor.guess == nil { // older versions stored none
		for _, e := range n.predictor.history {
			if e.known() {
				n.predictor.guessAgain(e.Family)
			}
		}
	}
	n.users.at, n.users.tick = min(snap.UsersAt, snap.Now), snap.FairTick
	for _, u := range snap.Users {
		if u == nil || n.users.of(u.userAccount()) != nil || u.Use < 0 || u.Standing < 0 || u.Top < 0 || u.First < 0 {
			return nil, fmt.Errorf("a user is empty, there twice or has used less than nothing")
		}
		n.users.all, n.users.byParty[u.userAccount()] = append(n.users.all, u), u
	}
	slices.SortFunc(n.users.all, func(a, b *user) int { return compareUserAccounts(a.userAccount(), b.userAccount()) })
	for _, g := range snap.GPUs {
		if g == nil || n.byID[g.ID] != nil {
			return nil, fmt.Errorf("a GPU is empty or there twice")
		}
		g.Settle()
		n.gpus, n.byID[g.ID] = append(n.gpus, g), g
	}
	slices.SortFunc(n.gpus, compareGPUs)
	n.placer.setRing(nil)
	if snap.Ring > 0 && snap.Ring < len(n.gpus) {
		n.ring = snap.Ring
	}
	for _, h := range snap.Hosts {
		if h == nil || n.host(h.Node) != nil {
			return nil, fmt.Errorf("a machine is empty or there twice")
		}
		h.Settle()
		n.hosts = append(n.hosts, h)
	}
	for _, t := range snap.Tasks {
		if t == nil || n.tasks[t.ID] != nil || (t.Phase.Placed() || t.Phase == model.Suspended) && len(t.Attempts) == 0 || (t.Phase == model.Suspended) && (t.Suspension == nil || len(t.Suspension.From) != t.GPUs) {
			return nil, fmt.Errorf("a task is empty, there twice or runs without an attempt")
		}
		n.addTask(t)
		if t.Waiting() {
			n.queue.waiting.add(t)
		}
	}
	if err := n.auditPlaces(n.queue.waitingTasks()); err != nil { // what follows reads the grants of tasks
		return nil, err
	}
	slices.SortFunc(snap.Tasks, func(a, b *model.Task) int { return cmp.Compare(a.ID, b.ID) })
	n.queue.regroup(snap.Tasks)
	n.placer.findMPSDomains()
	n.fillShares()
	n.queue.count(n.users)
	return n, n.Audit()
}
