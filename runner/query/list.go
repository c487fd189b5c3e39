package query

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Page returns one page of a listing, newest first, and where the next one begins, or 0 if there is none.
func (r *Tasks) Page(ctx context.Context, o api.ListOptions) (list []api.Task, next int64, err error) {
	recs, more, err := r.listed(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	recs, next = page(recs, pageLimit(o))
	next = cmp.Or(next, more)
	list, err = r.views(ctx, recs)
	return list, next, err
}

// views returns records as users see them in a listing.
func (r *Tasks) views(ctx context.Context, recs []*record.Record) ([]api.Task, error) {
	views, err := r.States(ctx, recs)
	if err != nil {
		return nil, err
	}
	out := make([]api.Task, len(recs))
	for i, rec := range recs {
		out[i] = r.Present(ctx, rec, views[rec.ID()], rights.ListEnvironment)
		out[i].Submit.Network = nil // up to 64 KiB of each task
	}
	return out, nil
}

// listed returns the newest matching records, and one more if there are more than a page
// holds. more, if not 0, is the lowest number that was read; tasks with lower numbers may
// match too.
func (r *Tasks) listed(ctx context.Context, o api.ListOptions) (recs []*record.Record, more int64, err error) {
	asked, filter, err := r.wanted(ctx, &o)
	if err != nil {
		return nil, 0, err
	}
	before := model.TaskID(o.Before)
	if !o.All || !r.c.Find.Records.HasForgotten() {
		recs = r.c.Find.Records.Newest(before, pageLimit(o)+1, asked)
		return recs, 0, filter.Err()
	}
	recs = r.c.Find.Records.Newest(before, math.MaxInt, asked)
	limit := pageLimit(o)
	rows, err := r.c.Find.Journal.Tasks(journal.Filter{User: o.User, Group: o.Group, Before: o.Before, Limit: limit, Bytes: record.PageBytes})
	if err != nil {
		return nil, 0, err
	}
	bytes := 0
	have := map[model.TaskID]bool{}
	for _, rec := range recs {
		have[rec.ID()] = true
	}
	for _, row := range rows {
		bytes += len(row.Body)
		rec, err := record.Decode(row)
		if err != nil {
			return nil, 0, err
		}
		if !have[rec.ID()] && asked(rec) {
			recs = append(recs, rec)
		}
	}
	if len(rows) > 0 && (len(rows) == limit || bytes >= record.PageBytes) {
		more = rows[len(rows)-1].ID
	}
	if filter.Err() != nil {
		return nil, 0, filter.Err()
	}
	recs = slices.DeleteFunc(recs, func(rec *record.Record) bool { return int64(rec.ID()) < more })
	slices.SortFunc(recs, func(a, b *record.Record) int { return cmp.Compare(b.ID(), a.ID()) })
	return recs, more, nil
}

// wanted returns a function that reports whether a record matches the options and the
// caller may know of it.
func (r *Tasks) wanted(ctx context.Context, o *api.ListOptions) (func(*record.Record) bool, *access.Filter, error) {
	filter := r.c.Authz.Filter(ctx)
	if _, err := path.Match(o.Name, ""); err != nil {
		return nil, nil, request.Errorf(422, "name %q is no pattern; write for example exp-*", o.Name)
	}
	who, err := request.KnownCaller(ctx)
	if o.Mine && err != nil {
		return nil, nil, err
	}
	me := rights.Caller{UID: who.UID, Name: who.Name}
	since, until := units.InstantOf(o.Since), units.InstantOf(o.Until)
	return func(rec *record.Record) bool {
		t := &rec.Task
		switch done := t.Phase.Finished(); {
		case done && !o.All, o.Mine && !rights.Owns(me, access.OwnerOf(rec)), o.User != "" && rec.User != o.User, o.Group != "" && rec.Group != o.Group, !hasLabel(rec, o.Label),
			!o.HasPhase(string(t.Phase)), !o.Since.IsZero() && done && t.Ended < since, !o.Until.IsZero() && t.Submitted >= until:
			return false
		}
		fits, _ := path.Match(o.Name, rec.Name)
		return (fits || o.Name == "") && filter.Shows(rec)
	}, filter, nil
}

func hasLabel(rec *record.Record, want string) bool {
	if want == "" {
		return true
	}
	k, v, withValue := cutLabel(want)
	got, ok := rec.Submit.Labels[k]
	return ok && (!withValue || got == v)
}

func cutLabel(s string) (key, value string, withValue bool) {
	for i := range len(s) {
		if s[i] == '=' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// page cuts a listing, newest first, to one page. next is the number to ask with for the
// older tasks, or 0 if there are none.
func page(recs []*record.Record, limit int) (some []*record.Record, next int64) {
	bytes := int64(0)
	for i, rec := range recs {
		bytes += record.SizeOf(&rec.Submit)
		if i > 0 && (i >= limit || bytes > record.PageBytes) {
			return recs[:i], int64(recs[i-1].ID())
		}
	}
	return recs, 0
}

// pageLimit returns how many tasks a page has at most.
func pageLimit(o api.ListOptions) int {
	if o.Limit <= 0 || o.Limit > record.PageTasks {
		return record.PageTasks
	}
	return o.Limit
}

// Group lists one page of the tasks of the newest group of a name, in order of
// number; see [record.Finder.GroupPage].
func (r *Tasks) Group(ctx context.Context, name string, o api.ListOptions) ([]api.Task, int64, error) {
	recs, next, err := r.c.Find.GroupPage(name, o.After, pageLimit(o))
	if err != nil {
		return nil, 0, err
	}
	filter := r.c.Authz.Filter(ctx)
	recs = slices.DeleteFunc(recs, func(rec *record.Record) bool { return !filter.Shows(rec) })
	if filter.Err() != nil {
		return nil, 0, filter.Err()
	}
	list, err := r.views(ctx, recs)
	return list, next, err
}
