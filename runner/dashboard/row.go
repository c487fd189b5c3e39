package dashboard

import (
	"math"
	"time"

	"carma/runner/api"
	"carma/runner/energy"
)

// shortForm returns the short form of a task. Times and shares are rounded, so that small
// changes are not sent.
func shortForm(t *api.Task) api.LiveTask {
	v := api.LiveTask{
		ID: t.ID, Name: t.Name, User: t.User, UID: t.UID, Group: t.Group, Phase: t.Phase, GPUCount: t.GPUCount, Need: t.Need, Estimate: t.Estimate.Memory,
		Submitted: t.Submitted, Started: t.Started, Ended: t.Ended, Attempts: len(t.Attempts), Waits: t.Waits, Reason: t.ReasonCode,
	}
	if t.Priority != "normal" {
		v.Priority = t.Priority
	}
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Ended.IsZero() {
		for _, g := range t.Attempts[n-1].GPUs {
			v.GPUs = append(v.GPUs, g.Index)
		}
	}
	if p := t.Progress; p != nil {
		v.Share = math.Round(p.Share*1000) / 1000
		v.Doubt = v.Share > 0 && p.Doubt != ""
		v.ETA = roundedTime(p.ETA, t.Started)
		if p.Slowdown != nil {
			v.Slowdown = energy.Hundredths(p.Slowdown.Value)
		}
	}
	if t.Suspension != nil {
		v.Away = t.Suspension.Since
	}
	if t.Idle != nil {
		v.Idle = t.Idle.Since
	}
	return v
}

// roundedTime rounds a forecast time: to a minute if it is far from another time, else to
// ten seconds.
func roundedTime(at, from time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	if at.Sub(from) > time.Hour {
		return at.Round(time.Minute)
	}
	return at.Round(10 * time.Second)
}
