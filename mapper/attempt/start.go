package attempt

import (
	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/place"
)

// Started records that the container of an attempt runs.
func (at *Attempts) Started(ev model.Started) {
	t := at.TaskByID(ev.Task)
	if t == nil || t.Current() == nil || t.Current().N != ev.Attempt || t.Current().Started != 0 {
		return
	}
	at.onStarted(t, t.Current(), at.Now())
}

// onStarted records that the container of an attempt has run since an instant.
func (at *Attempts) onStarted(t *model.Task, a *model.Attempt, since units.Instant) {
	a.Started, t.PacedAt, t.Idle = since, at.Now(), model.Idleness{}
	at.breakers.StartSucceeded(t, a)
	at.lifecycle.TaskStarted(t.ID)
	if t.Phase == model.Launching {
		t.Phase = model.Running
	}
	for _, grant := range a.Grants {
		g := at.GPU(grant.GPU)
		g.ChangedAt = at.Now()
		g.InvalidateForecast()
		g.Resident(t.ID).WarmUntil = at.Now().Add(at.Options().WarmUp)
		g.Settle()
	}
	at.SetTimer(at.Now().Add(at.Options().WarmUp), ledger.Timer{})
	at.preempter.SetPreemptionTimers(t)
	for _, grant := range a.Grants { // samples come only when something changes
		at.preempter.CheckActivity(at.GPU(grant.GPU))
	}
	if ends := at.SlotEnds(t); ends != units.Never {
		at.SetTimer(ends, ledger.Timer{})
	}
	if len(t.Expected.Loads) == 0 {
		at.SetTimer(at.Now().Add(model.SettleTime), ledger.Timer{})
	}
	if at.placer.Predicts() {
		at.SetTimer(since.Add(place.TellWithin), ledger.Timer{})
	}
	if t.TimeLimit > 0 {
		at.SetTimer(since.Add(t.TimeLimit), ledger.Timer{Task: t.ID, Attempt: a.N})
	}
}
