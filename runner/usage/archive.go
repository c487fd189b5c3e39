// Package usage keeps what removed tasks have used, as sums per day, user, account, group,
// image and GPU. It owns the rows of the journal's meta with these sums. The sums are stored
// in the commit that deletes the records, so that no task is counted twice or lost, whenever
// the daemon is killed.
package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

const (
	// pastKey is the prefix of the keys of days in the journal's meta. The day follows,
	// as 2006-01-02 in the time of this machine.
	pastKey = "used/"
	// pastDays is the number of days kept. pastRows is the number of sums of a day;
	// further sums of a user are added up without image and group.
	pastDays = 400
	pastRows = 500
)

// Authority decides who sees the usage of others.
type Authority interface {
	// MayServer reports whether a caller may do something to the server.
	MayServer(rights.Action, request.Caller) bool
}

// Archive holds the usage of the removed tasks.
type Archive struct {
	journal *journal.Journal
	records *record.Store
	auth    Authority
	index   func(model.GPUID) int
}

// New returns the archive in a journal. records has the tasks that are in memory. index
// returns the index of a GPU, or -1 if it is unknown.
func New(j *journal.Journal, records *record.Store, auth Authority, index func(model.GPUID) int) *Archive {
	return &Archive{journal: j, records: records, auth: auth, index: index}
}

// Add returns the days to store in the commit that deletes the records of tasks: the sums
// with the usage of these tasks.
func (a *Archive) Add(removed []model.TaskID) []journal.MetaRow {
	b := batch{Archive: a}
	for _, id := range removed {
		b.add(id)
	}
	return b.meta()
}

// dayUsage holds the sums of a day.
type dayUsage []api.Used

// batch holds the days that a commit changes. It reads each day from the journal once.
type batch struct {
	*Archive
	days map[string]dayUsage
}

// add adds a task's usage to the sums, before its record is deleted.
func (b *batch) add(id model.TaskID) {
	rec, _ := b.records.Get(id)
	if rec == nil {
		row, err := b.journal.Task(int64(id))
		if err != nil {
			return // the task was removed before
		}
		if rec, err = record.Decode(row); err != nil {
			return
		}
	}
	t := &rec.Task
	if !t.Phase.Finished() {
		return
	}
	u := b.row(rec, t.Ended, nil)
	u.Tasks++
	switch t.Phase {
	case model.Succeeded:
		u.Succeeded++
	case model.Failed:
		u.Failed++
	}
	if len(t.Attempts) > 0 {
		u.Starts++
		u.Waited += max(0, t.Attempts[0].Launched.Sub(t.Submitted)).Seconds()
	}
	for i := range t.Attempts {
		b.attempt(rec, &t.Attempts[i])
	}
}

// attempt adds the usage of an attempt, split at midnight.
func (b *batch) attempt(rec *record.Record, a *model.Attempt) {
	from, to := cmp.Or(a.Started, a.Launched), a.Ended
	if len(a.Grants) == 0 || to < from {
		return
	}
	if a.Class == model.ExitGPUOOM {
		b.row(rec, to, new(b.index(a.Grants[0].GPU))).OOMs++
	}
	whole := to.Sub(from).Seconds()
	away := 0.0 // share of the attempt's time in which it was suspended, as if spread evenly
	if whole > 0 {
		away = min(1, max(0, a.SuspendedTime.Seconds()/whole))
	}
	for from < to {
		end := min(to, midnight(from))
		passed := end.Sub(from).Seconds()
		ran := passed * (1 - away)
		for _, g := range a.Grants {
			u := b.row(rec, from, new(b.index(g.GPU)))
			u.GPUSeconds += ran
			u.AwaySeconds += passed * away
			switch {
			case g.Memory > 0 && !rec.Measured(a) && a.Started > 0:
				u.Unmeasured += ran
			case g.Memory > 0 && rec.Measured(a):
				u.Booked += g.Memory.GiB() * ran
				u.Wasted += max(0, g.Memory-a.Peak).GiB() * ran
			}
			u.EnergyJ += rec.Energy[a.N] * passed / whole / float64(len(a.Grants))
		}
		from = end
	}
}

// midnight returns the end of the day of an instant.
func midnight(at units.Instant) units.Instant {
	t := at.Time().Local()
	return units.Instant(time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.Local).UnixNano())
}

// row finds or makes the sum to which a task is added on a day. The pointer is valid
// until the next call.
func (b *batch) row(rec *record.Record, at units.Instant, gpu *int) *api.Used {
	date := at.Time().Local().Format(time.DateOnly)
	day, ok := b.days[date]
	if !ok {
		if body, err := b.journal.Meta(pastKey + date); err == nil {
			_ = json.Unmarshal(body, &day)
		}
	}
	want := api.Used{Day: date, User: rec.User, Account: rec.Submit.Account, Group: rec.Group, Image: rec.Submit.Source(), GPU: gpu}
	i := slices.IndexFunc(day, want.Same)
	if i < 0 && len(day) >= pastRows {
		want.Group, want.Image = "", ""
		i = slices.IndexFunc(day, want.Same)
	}
	if i < 0 {
		i, day = len(day), append(day, want)
	}
	if b.days == nil {
		b.days = map[string]dayUsage{}
	}
	b.days[date] = day
	return &day[i]
}

// meta returns the days in the journal's form.
func (b *batch) meta() (all []journal.MetaRow) {
	for date, day := range b.days {
		if body, err := json.Marshal(day); err == nil {
			all = append(all, journal.MetaRow{Key: pastKey + date, Value: body})
		}
	}
	slices.SortFunc(all, func(a, b journal.MetaRow) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// Drop deletes the days that are older than pastDays.
func (a *Archive) Drop(now time.Time) error {
	oldest := pastKey + now.Local().AddDate(0, 0, -pastDays).Format(time.DateOnly)
	all, err := a.journal.Metas(pastKey)
	if err != nil {
		return nil // the journal's check reports the error
	}
	for _, m := range all {
		if m.Key < oldest {
			if err := a.journal.DropMeta(m.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// List returns the sums by day, from since on and before until. An empty bound does not
// limit. A caller who may not see the usage of others gets only the own usage.
func (a *Archive) List(ctx context.Context, since, until string) ([]api.Used, error) {
	list := []api.Used{}
	all, err := a.journal.Metas(pastKey)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		date := strings.TrimPrefix(m.Key, pastKey)
		var day dayUsage
		if date < since || until != "" && date >= until {
			continue
		}
		if err := json.Unmarshal(m.Value, &day); err != nil {
			continue
		}
		if who, _ := request.CallerFrom(ctx); !a.auth.MayServer(rights.SeeUse, who) {
			day = slices.DeleteFunc(day, func(u api.Used) bool { return u.User != who.Name })
		}
		list = append(list, day...)
	}
	return list, nil
}
