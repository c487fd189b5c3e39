package loop

import (
	"carma/mapper/model"
)

// refresh updates the records of the tasks that an event and its decisions are about.
func (l *Loop) refresh(ev model.Event, decisions []model.Decision) {
	if removed, ok := ev.(model.Removed); ok {
		for _, id := range removed.Tasks {
			l.records.Drop(id)
		}
	}
	l.refreshTask(model.About(ev))
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			l.refreshTask(d.Task)
		case model.Stop:
			l.refreshTask(d.Task)
		case model.Suspend:
			l.refreshTask(d.Task)
		case model.Resume:
			l.refreshTask(d.Task)
		case model.Resize:
			l.refreshTask(d.Task)
		case model.Idle:
			l.refreshTask(d.Task)
		case model.GrantChanged:
			l.refreshTask(d.Task)
		case model.Requeue:
			l.refreshTask(d.Task)
		case model.Release:
			l.refreshTask(d.Task)
		case model.Finish: // the state has forgotten the task
			if rec, _ := l.records.Get(d.Task.ID); rec != nil {
				l.records.Put(rec.WithTask(d.Task))
			}
		}
	}
}

// refreshTask updates the record of a task, if the state has the task.
func (l *Loop) refreshTask(id model.TaskID) {
	rec, _ := l.records.Get(id)
	if t, ok := l.state.Task(id); ok && rec != nil {
		l.records.Put(rec.WithTask(*t))
	}
}
