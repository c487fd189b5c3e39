package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/energy"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/rights"
)

// snapshot is the state at one time, its parts as JSON.
type snapshot struct {
	at    time.Time
	info  []byte
	gpus  []byte
	tasks map[int64]row
	queue []int64
}

// row is a task of a snapshot, with and without the data from its output.
type row struct {
	owner         rights.Owner
	whole, public []byte
}

// sameAs reports whether every caller sees the same in both rows.
func (t row) sameAs(o row) bool {
	return bytes.Equal(t.whole, o.whole) && bytes.Equal(t.public, o.public)
}

// as returns the row as a caller may see it.
func (t row) as(v view) []byte {
	if v.policy.May(rights.Progress, v.who, t.owner) {
		return t.whole
	}
	return t.public
}

// view is the caller's rights in a snapshot. Viewers with equal views get equal bytes.
type view struct {
	policy rights.Policy
	who    rights.Caller
}

// views holds the events for viewers with equal rights: a whole snapshot, and the change
// from the previous snapshot. Each is nil until it is made.
type views struct{ whole, change []byte }

func (p *snapshot) same(o *snapshot) bool {
	if !bytes.Equal(p.info, o.info) || !bytes.Equal(p.gpus, o.gpus) || len(p.tasks) != len(o.tasks) || !slices.Equal(p.queue, o.queue) {
		return false
	}
	for id, t := range p.tasks {
		if !t.sameAs(o.tasks[id]) {
			return false
		}
	}
	return true
}

// event returns the change from a snapshot to p as a viewer may see it, or all of p
// without an earlier snapshot.
func (p *snapshot) event(from *snapshot, seq int64, as view) []byte {
	var b bytes.Buffer
	now, _ := p.at.MarshalJSON()
	fmt.Fprintf(&b, "event: live\ndata: {\"seq\":%d,\"now\":%s", seq, now)
	if from == nil {
		b.WriteString(`,"whole":true`)
		from = &snapshot{}
	}
	if !bytes.Equal(p.info, from.info) {
		fmt.Fprintf(&b, `,"info":%s`, p.info)
	}
	if !bytes.Equal(p.gpus, from.gpus) {
		fmt.Fprintf(&b, `,"gpus":%s`, p.gpus)
	}
	var tasks [][]byte
	for _, id := range sortedKeys(p.tasks) {
		row := p.tasks[id].as(as)
		if old, there := from.tasks[id]; !there || !bytes.Equal(row, old.as(as)) {
			tasks = append(tasks, row)
		}
	}
	if len(tasks) > 0 {
		fmt.Fprintf(&b, `,"tasks":[%s]`, bytes.Join(tasks, []byte{','}))
	}
	var gone []int64
	for _, id := range sortedKeys(from.tasks) {
		if _, there := p.tasks[id]; !there {
			gone = append(gone, id)
		}
	}
	writeList(&b, "gone", gone)
	if !slices.Equal(p.queue, from.queue) {
		if writeList(&b, "queue", p.queue); len(p.queue) == 0 {
			b.WriteString(`,"emptied":true`)
		}
	}
	b.WriteString("}\n\n")
	return b.Bytes()
}

func writeList(b *bytes.Buffer, name string, list []int64) {
	if len(list) > 0 {
		text, _ := json.Marshal(list)
		fmt.Fprintf(b, `,"%s":%s`, name, text)
	}
}

func sortedKeys(m map[int64]row) []int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// snapshot returns the present state with the tasks that the caller may know of, or with
// all tasks if there is no caller.
func (f *Feed) snapshot(ctx context.Context) (*snapshot, error) {
	p := &snapshot{at: f.c.Clock.Time(), tasks: map[int64]row{}}
	gpus, err := f.c.Server.ListGPUs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range gpus {
		g := &gpus[i] // figures of lower precision change less often
		g.EnergyJ, g.SMACT, g.SMOCC, g.DRAMA = 0, energy.Hundredths(g.SMACT), energy.Hundredths(g.SMOCC), energy.Hundredths(g.DRAMA)
		g.PowerW = float64(int(g.PowerW + 0.5))
	}
	if p.gpus, err = json.Marshal(gpus); err != nil {
		return nil, err
	}
	info, err := f.c.Server.LiveInfo(ctx)
	if err != nil {
		return nil, err
	}
	if info.LeftOut, err = f.addTasks(ctx, p); err != nil {
		return nil, err
	}
	p.info, err = json.Marshal(info)
	return p, err
}

// addTasks adds the tasks, and returns the number of unfinished tasks that do not
// fit.
func (f *Feed) addTasks(ctx context.Context, p *snapshot) (left int, err error) {
	f.mu.Lock()
	most, starts := f.most, f.starts
	f.mu.Unlock()
	recs, left := f.recordsOf(most)
	recs = append(recs, f.c.Records.LastDone(mostEnded)...)
	filter := f.c.Authz.Filter(ctx)
	recs = slices.DeleteFunc(recs, func(rec *record.Record) bool { return !filter.Shows(rec) })
	if filter.Err() != nil {
		return left, filter.Err()
	}
	views, err := f.c.Tasks.States(ctx, recs)
	if err != nil {
		return left, err
	}
	slices.SortFunc(recs, func(a, b *record.Record) int {
		return cmp.Or(cmp.Compare(views[a.ID()].Position, views[b.ID()].Position), cmp.Compare(a.ID(), b.ID()))
	})
	for _, rec := range recs {
		t := f.c.Tasks.View(rec, views[rec.ID()]) // a row has no environment and no line of output
		if t.Position > 0 {
			p.queue = append(p.queue, t.ID)
		}
		if p.tasks[t.ID], err = newRow(rec, &t, starts[t.ID]); err != nil {
			return left, err
		}
	}
	if !filter.All() {
		return left, nil // only viewers who see all tasks get forecast starts
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first = p.queue[:min(mostStarts, len(p.queue))]
	return left, nil
}

// newRow makes the row of a task.
func newRow(rec *record.Record, t *api.Task, start *api.Start) (row row, err error) {
	marshal := func() ([]byte, error) {
		v := shortForm(t)
		v.Start = start
		return json.Marshal(v)
	}
	row.owner = access.OwnerOf(rec)
	if row.whole, err = marshal(); err != nil {
		return row, err
	}
	row.public = row.whole
	if t.Progress != nil && !row.owner.Open {
		t.Progress = query.WithoutOutput(t.Progress)
		row.public, err = marshal()
	}
	return row, err
}

// mostUnfinished is the largest number of unfinished tasks in a snapshot. Tasks that have or had
// GPUs come first, then pending tasks, oldest first.
const mostUnfinished = 2000

// recordsOf returns the unfinished tasks of a snapshot, at most most, and the number of
// further ones.
func (f *Feed) recordsOf(most int) (recs []*record.Record, left int) {
	var first, rest []*record.Record
	for _, rec := range f.c.Records.Newest(0, math.MaxInt, func(rec *record.Record) bool { return !rec.Task.Phase.Finished() }) {
		if p := rec.Task.Phase; p.Placed() || p == model.Suspended {
			first = append(first, rec)
		} else {
			rest = append(rest, rec)
		}
	}
	slices.Reverse(rest)
	all := len(first) + len(rest)
	first = first[:min(most, len(first))]
	recs = append(first, rest[:min(most-len(first), len(rest))]...)
	return recs, all - len(recs)
}
