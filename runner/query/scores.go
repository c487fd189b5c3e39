package query

import (
	"cmp"
	"context"
	"maps"
	"math"
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

const (
	// scoredMost is the largest number of finished tasks that are read, newest first.
	scoredMost = 20_000
	// scoredPage is the number of records read at a time.
	scoredPage = 500
)

// Scores returns how well memory was estimated for the finished tasks that are kept. It
// covers the tasks of who, or of everybody if who is an administrator.
func (r *Tasks) Scores(ctx context.Context, who request.Caller) (api.Scores, error) {
	s := api.Scores{Everybody: r.c.Authz.MayServer(rights.AllScores, who), Families: []api.Score{}}
	families := map[string]*errorTally{}
	before := int64(0)
	for seen := 0; seen < scoredMost; seen += scoredPage {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		rows, err := r.c.Find.Journal.Tasks(journal.Filter{Before: before, Limit: scoredPage})
		if err != nil {
			return s, err
		}
		for _, row := range rows {
			before = row.ID
			if !row.Finished {
				continue
			}
			rec, err := record.Decode(row)
			if err != nil {
				return s, err
			}
			if !s.Everybody && !rights.Owns(r.c.Authz.Subject(who), access.OwnerOf(rec)) {
				continue
			}
			if !scored(families, &rec.Task) {
				s.Unscored++
			}
		}
		if len(rows) < scoredPage {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		s.Families = append(s.Families, families[name].score(name))
	}
	return s, nil
}

// scored adds a finished task to its family, or returns false if the task has no
// measurement.
func scored(families map[string]*errorTally, t *model.Task) bool {
	a := t.Last()
	if t.Phase != model.Succeeded || a == nil || !a.Measures() || t.Estimate.Memory <= 0 {
		return false
	}
	name := cmp.Or(t.Estimate.Plain.Group, string(t.Estimate.Method), "unknown")
	switch t.Estimate.Method {
	case model.FromHistory:
		name = "earlier runs of the same task"
	case model.Declared:
		name = "declared"
	}
	f := families[name]
	if f == nil {
		f = &errorTally{}
		families[name] = f
	}
	point := t.Estimate.Point
	if t.Estimate.Method == model.FromHistory || t.Estimate.Method == model.Declared {
		point = 0
	}
	f.booked.add(point, t.Estimate.Memory, a.Peak)
	if p := t.Estimate.Plain; p.Point > 0 {
		f.plain.add(p.Point, p.Upper, a.Peak)
	}
	return true
}

// errorTally has the errors of a family, for the allocated and for the plain estimates.
type errorTally struct{ booked, plain sums }

type sums struct {
	n, above int
	overhead float64
	errors   []float64 // of the tasks with a point estimate
}

func (s *sums) add(point, upper, peak units.Bytes) {
	s.n++
	if peak > upper {
		s.above++
	}
	s.overhead += float64(upper)/float64(peak) - 1
	if point > 0 {
		s.errors = append(s.errors, math.Abs(float64(point)/float64(peak)-1))
	}
}

// of returns the median error, the share of tasks above their estimate and the mean
// overhead.
func (s *sums) of() (median, above, overhead float64) {
	if s.n == 0 {
		return -1, 0, 0
	}
	n := len(s.errors)
	slices.Sort(s.errors)
	median = -1
	if n > 0 {
		median = (s.errors[(n-1)/2] + s.errors[n/2]) / 2
	}
	return median, float64(s.above) / float64(s.n), s.overhead / float64(s.n)
}

func (t *errorTally) score(name string) api.Score {
	s := api.Score{Family: name, Tasks: t.booked.n, PlainTasks: t.plain.n}
	s.Median, s.Above, s.Overhead = t.booked.of()
	s.PlainMedian, s.PlainAbove, s.PlainOverhead = t.plain.of()
	return s
}
