package metrics

import (
	"math"
	"time"
)

// priorities are on each page, even with 0 tasks, so that alerts can detect that a queue
// fills up.
var priorities = []string{"low", "normal", "high"}

func (o *output) queue(all []Queue) {
	oldest := map[string]time.Duration{}
	for _, q := range all {
		o.put(queueTasks, float64(q.Tasks), q.Priority, q.Reason)
		oldest[q.Priority] = max(oldest[q.Priority], q.Oldest)
	}
	for _, p := range priorities {
		o.put(queueOldest, oldest[p].Seconds(), p)
	}
}

func (o *output) server(s *State) {
	o.put(heldTasks, float64(s.Held))
	o.put(awayTasks, float64(s.Away))
	o.put(running, float64(len(s.Tasks)))
	joules, gpuSeconds, users := 0.0, 0.0, 0
	for _, u := range s.Users {
		joules += u.EnergyJ
		gpuSeconds += u.GPUSeconds
		if u.Running+u.Waiting > 0 {
			users++
		}
	}
	o.put(userCount, float64(users))
	o.put(taskTotalJ, joules)
	o.put(taskSeconds, gpuSeconds)
	o.put(idleEnergy, s.IdleJ)
	o.put(engineUp, flag(s.EngineUp))
	o.put(ready, flag(s.Ready))
	o.put(paused, flag(s.Paused))
	o.put(draining, flag(s.Draining))
	for _, scope := range []string{"daemon", "engine", "gpu"} {
		o.put(troubles, float64(s.Troubles[scope]), scope)
	}
	o.put(journalSize, float64(s.Journal.Bytes))
	o.put(journalFull, flag(s.Journal.Full))
	if !s.Journal.Snapshot.IsZero() {
		o.put(snapshotAt, seconds(s.Journal.Snapshot))
	}
	o.put(daemonTime, seconds(s.Now))
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// seconds returns a time in seconds since 1970, as Prometheus expects.
func seconds(t time.Time) float64 {
	return math.Round(float64(t.UnixNano())/1e6) / 1e3
}
