package record

import (
	"errors"
	"strconv"

	"carma/runner/journal"
	"carma/runner/request"
)

const (
	// PageBytes is the approximate size of one page of a listing, PageTasks the most tasks
	// on it.
	PageBytes = 2 << 20
	PageTasks = 1000
)

// Finder finds the tasks and groups that users name, in memory or in the journal. An error
// that nothing has the name is a [request.Error] of status 404.
type Finder struct {
	Records *Store
	Journal *journal.Journal
}

// Find returns a task's record by number or name. Of several tasks with the same name it
// returns the newest.
func (f *Finder) Find(ref string) (*Record, error) {
	if rec := f.Records.Find(ref); rec != nil {
		return rec, nil
	}
	var row journal.TaskRow
	id, err := strconv.ParseInt(ref, 10, 64)
	if err == nil {
		row, err = f.Journal.Task(id)
	} else {
		row, err = f.Journal.TaskByName(ref)
	}
	if errors.Is(err, journal.ErrNotFound) && f.Records.OpenGroup(ref) {
		return nil, request.Errorf(404, "no task %s, but a group of tasks; name one of them, or use --group %s where there is one", ref, ref)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return nil, request.Errorf(404, "no task %s; `carma ps -a` lists all", ref)
	}
	if err != nil {
		return nil, err
	}
	return Decode(row)
}

// Referred returns the tasks that a number or a name refers to: one task, or all tasks of a
// group.
func (f *Finder) Referred(ref string) ([]*Record, error) {
	rec, err := f.Find(ref)
	if err == nil {
		return []*Record{rec}, nil
	}
	if !request.IsNotFound(err) {
		return nil, err
	}
	recs, err := f.Group(ref)
	if request.IsNotFound(err) {
		return nil, request.Errorf(422, "--after: no task and no group %s; `carma ps -a` lists all", ref)
	}
	return recs, err
}

// NewestOf returns a task of the newest group of a name.
func (f *Finder) NewestOf(name string) (*Record, error) {
	rows, err := f.Journal.Tasks(journal.Filter{Group: name, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, request.Errorf(404, "no group %s; `carma ps -a` lists all tasks", name)
	}
	return Decode(rows[0])
}

// Group returns the tasks of the newest group of a name, in order of number.
func (f *Finder) Group(name string) (recs []*Record, err error) {
	for after := int64(0); ; {
		some, next, err := f.GroupPage(name, after, PageTasks)
		if err != nil {
			return nil, err
		}
		recs = append(recs, some...)
		if after = next; next == 0 {
			return recs, nil
		}
	}
}

// GroupPage returns tasks of the newest group of a name, with numbers above after, in order
// of number. next is the number to ask with for the following tasks, or 0 if there are
// none.
func (f *Finder) GroupPage(name string, after int64, limit int) (recs []*Record, next int64, err error) {
	newest, err := f.NewestOf(name)
	if err != nil {
		return nil, 0, err
	}
	rows, err := f.Journal.Tasks(journal.Filter{Group: name, From: max(after+1, int64(newest.GroupID)), Limit: limit, Bytes: PageBytes})
	if err != nil {
		return nil, 0, err
	}
	bytes := 0
	for _, row := range rows {
		bytes += len(row.Body)
		rec := f.Records.Find(strconv.FormatInt(row.ID, 10))
		if rec == nil {
			if rec, err = Decode(row); err != nil {
				return nil, 0, err
			}
		}
		recs = append(recs, rec)
	}
	if len(rows) == limit || bytes >= PageBytes {
		next = rows[len(rows)-1].ID
	}
	return recs, next, nil
}
