package account

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// Usage sums the tasks of one user, group, image or GPU within a span of time.
type Usage struct {
	Name      string `json:"name"`
	Tasks     int    `json:"tasks"`
	Succeeded int    `json:"succeeded"`
	Failed    int    `json:"failed"`
	OOMs      int    `json:"gpu_ooms"` // attempts that ran out of GPU memory
	// Idle is the number of running tasks that have been idle for some time.
	Idle int `json:"idle,omitempty"`
	// GPUHours is time on GPUs, shared or not, counted for each GPU. Share is its part of
	// all GPU hours. Neither includes time suspended. AwayHours is the time suspended,
	// counted for each GPU that the task had.
	GPUHours  float64 `json:"gpu_hours"`
	AwayHours float64 `json:"suspended_hours,omitempty"`
	Share     float64 `json:"share"`
	// BookedGiBHours is allocated memory times time, for attempts with a known peak, which
	// may be 0. WastedGiBHours is the part above their peaks. UnmeasuredHours is the GPU
	// hours of ended attempts with an unknown peak.
	BookedGiBHours  float64 `json:"booked_gib_hours"`
	WastedGiBHours  float64 `json:"wasted_gib_hours"`
	UnmeasuredHours float64 `json:"unmeasured_gpu_hours,omitempty"`
	// Waiting is the mean time from submission to the first start, in seconds.
	Waiting float64 `json:"mean_waiting_seconds"`
	EnergyJ float64 `json:"energy_j,omitempty"`

	waited time.Duration
	starts int
	last   int64 // the last counted task
}

// span is a period of time. A zero start or end means no limit.
type span struct{ since, until time.Time }

// within returns the part of the time between from and to that is in the span.
func (s span) within(from, to time.Time) time.Duration {
	if !s.since.IsZero() && from.Before(s.since) {
		from = s.since
	}
	if !s.until.IsZero() && to.After(s.until) {
		to = s.until
	}
	return max(0, to.Sub(from))
}

// kinds lists the keys by which usage can be summed, in the order of the help text.
var kinds = []string{"user", "account", "group", "image", "gpu"}

// ledger sums up usage by name.
type ledger struct {
	span
	now  time.Time
	rows map[string]*Usage
}

func (l *ledger) row(name string) *Usage {
	u := l.rows[name]
	if u == nil {
		u = &Usage{Name: name}
		l.rows[name] = u
	}
	return u
}

// sum returns the usage of tasks by a kind, the most GPU-hours first, and the total. past
// contains the sums of removed tasks per day.
func sum(list []api.Task, past []api.Used, kind string, s span, now time.Time) (rows []Usage, total Usage) {
	l := &ledger{span: s, now: now, rows: map[string]*Usage{}}
	all := &ledger{span: s, now: now, rows: map[string]*Usage{}}
	for i := range list {
		t := &list[i]
		name := map[string]string{"user": t.User, "account": cmp.Or(t.Submit.Account, "-"), "group": cmp.Or(t.Group, "-"), "image": t.Image}[kind]
		l.add(t, func(g api.GPURef) string {
			if kind == "gpu" {
				return strconv.Itoa(g.Index)
			}
			return name
		}, kind != "gpu")
		all.add(t, func(api.GPURef) string { return "total" }, true)
	}
	for i := range past {
		v := &past[i]
		all.row("total").past(v)
		name := map[string]string{"user": v.User, "account": cmp.Or(v.Account, "-"), "group": cmp.Or(v.Group, "-"), "image": cmp.Or(v.Image, "-")}[kind]
		if kind != "gpu" {
			l.row(name).past(v)
		} else if v.GPU != nil {
			l.row(strconv.Itoa(*v.GPU)).past(v)
		}
	}
	total = *all.row("total")
	total.finish(total.GPUHours)
	for _, u := range l.rows {
		u.finish(total.GPUHours)
		rows = append(rows, *u)
	}
	slices.SortFunc(rows, func(a, b Usage) int {
		if kind == "gpu" {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Or(cmp.Compare(b.GPUHours, a.GPUHours), cmp.Compare(a.Name, b.Name))
	})
	return rows, total
}

// add counts a task. name returns the row that its time on a GPU belongs to. With always,
// tasks without a GPU are counted too.
func (l *ledger) add(t *api.Task, name func(api.GPURef) string, always bool) {
	if always {
		l.row(name(api.GPURef{})).count(t)
	}
	for i := range t.Attempts {
		at := &t.Attempts[i]
		from, to := at.Launched, at.Ended
		if !at.Started.IsZero() {
			from = at.Started
		}
		if to.IsZero() {
			to = l.now
		}
		ran, away := l.split(t, at, from, to)
		if len(at.GPUs) == 0 || ran+away <= 0 && to.After(from) {
			continue // outside of the span
		}
		oom := at.Outcome == "gpu-oom"
		for _, g := range at.GPUs {
			u := l.row(name(g))
			u.count(t)
			if oom {
				u.OOMs++
				oom = !always // by GPU each GPU counts one, otherwise they count one together
			}
			u.AwayHours += away.Hours()
			u.spend(at, ran, to.Sub(from)-at.Suspended)
		}
	}
}

// split divides an attempt's time within the span into the time on GPUs and the time
// suspended. The start of a present suspension is known. For earlier suspensions only the
// sum is known, so they count as spread evenly over the rest.
func (l *ledger) split(t *api.Task, at *api.Attempt, from, to time.Time) (ran, away time.Duration) {
	rest := at.Suspended
	if s := t.Suspension; s != nil && !s.Since.IsZero() && at.Ended.IsZero() {
		since := s.Since
		away = l.within(since, to)
		rest = max(0, rest-max(0, to.Sub(since)))
		to = since
	}
	ran = l.within(from, to)
	if whole := to.Sub(from); rest > 0 && whole > 0 {
		part := time.Duration(min(1, rest.Seconds()/whole.Seconds()) * float64(ran))
		ran, away = ran-part, away+part
	}
	return ran, away
}

// count counts a task once.
func (u *Usage) count(t *api.Task) {
	if u.last == t.ID {
		return
	}
	u.last = t.ID
	u.Tasks++
	if t.Idle != nil {
		u.Idle++
	}
	switch t.Phase {
	case "succeeded":
		u.Succeeded++
	case "failed":
		u.Failed++
	}
	if len(t.Attempts) > 0 && !t.Attempts[0].Launched.IsZero() {
		u.waited += max(0, t.Attempts[0].Launched.Sub(t.Submitted))
		u.starts++
	}
}

// spend adds the part of an attempt on one GPU: ran is the part within the span, whole
// the complete time.
func (u *Usage) spend(at *api.Attempt, ran, whole time.Duration) {
	u.GPUHours += ran.Hours()
	switch measured := at.Peak > 0 || at.Untouched; {
	case at.Grant > 0 && !measured && !at.Started.IsZero() && !at.Ended.IsZero():
		u.UnmeasuredHours += ran.Hours()
	case at.Grant > 0 && measured:
		u.BookedGiBHours += units.Bytes(at.Grant).GiB() * ran.Hours()
		u.WastedGiBHours += units.Bytes(max(0, at.Grant-at.Peak)).GiB() * ran.Hours()
	}
	if whole > 0 {
		u.EnergyJ += at.EnergyJ * ran.Seconds() / whole.Seconds() / float64(len(at.GPUs))
	}
}

func (u *Usage) finish(all float64) {
	if all > 0 {
		u.Share = u.GPUHours / all
	}
	if u.starts > 0 {
		u.Waiting = (u.waited / time.Duration(u.starts)).Seconds()
	}
}

// past adds a sum of removed tasks.
func (u *Usage) past(v *api.Used) {
	u.Tasks += v.Tasks
	u.Succeeded += v.Succeeded
	u.Failed += v.Failed
	u.OOMs += v.OOMs
	u.GPUHours += v.GPUSeconds / 3600
	u.AwayHours += v.AwaySeconds / 3600
	u.BookedGiBHours += v.Booked / 3600
	u.WastedGiBHours += v.Wasted / 3600
	u.UnmeasuredHours += v.Unmeasured / 3600
	u.EnergyJ += v.EnergyJ
	u.waited += time.Duration(v.Waited * float64(time.Second))
	u.starts += v.Starts
}
