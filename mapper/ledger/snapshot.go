package ledger

import (
	"container/heap"
	"fmt"

	"carma/internal/units"
	"carma/mapper/model"
)

// Snapshot is the ledger's section of a snapshot.
type Snapshot struct {
	Decisions int           `json:"decisions,omitempty"` // DecisionFormat
	Now       units.Instant `json:"now"`
	Options   model.Options `json:"options"`
	GPUs      []*model.GPU  `json:"gpus"`
	Hosts     []*model.Host `json:"hosts,omitempty"`
	Tasks     []*model.Task `json:"tasks"`
	LastID    model.TaskID  `json:"last_id"`
	Deadlines []Timer       `json:"deadlines,omitempty"`
	Wake      units.Instant `json:"wake,omitempty"`
	Dirty     bool          `json:"dirty,omitempty"`
}

// Save returns the ledger's section. It shares the ledger's GPUs, machines and tasks.
func (l *Ledger) Save() Snapshot {
	return Snapshot{
		Decisions: l.format, Now: l.now, Options: l.opt, GPUs: l.gpus, Hosts: l.hosts, Tasks: l.TaskList(), LastID: l.lastID,
		Deadlines: l.timers, Wake: l.wake, Dirty: l.dirty,
	}
}

// Restore fills an empty ledger, which has the options, from its section.
func (l *Ledger) Restore(snap Snapshot) error {
	l.format, l.now, l.lastID = snap.Decisions, snap.Now, snap.LastID
	l.timers, l.wake, l.dirty = snap.Deadlines, snap.Wake, snap.Dirty
	heap.Init(&l.timers)
	for _, g := range snap.GPUs {
		if g == nil || l.byID[g.ID] != nil {
			return fmt.Errorf("a GPU is empty or there twice")
		}
		g.Settle()
		l.gpus, l.byID[g.ID] = append(l.gpus, g), g
	}
	l.SortGPUs()
	for _, h := range snap.Hosts {
		if h == nil || l.Host(h.Node) != nil {
			return fmt.Errorf("a machine is empty or there twice")
		}
		h.Settle()
		l.hosts = append(l.hosts, h)
	}
	for _, t := range snap.Tasks {
		if t == nil || l.tasks[t.ID] != nil || (t.Phase.Placed() || t.Phase == model.Suspended) && len(t.Attempts) == 0 || (t.Phase == model.Suspended) && (t.Suspension == nil || len(t.Suspension.From) != t.GPUs) {
			return fmt.Errorf("a task is empty, there twice or runs without an attempt")
		}
		l.AddTask(t)
	}
	return nil
}
