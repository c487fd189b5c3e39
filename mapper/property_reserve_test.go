package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"

	"pgregory.net/rapid"
)

func anyGPUs(t *rapid.T) []model.GPUID {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]model.GPUID{"a0", "a1", "a2", "b0", "b1", "x"}), 0, 4, func(id model.GPUID) model.GPUID { return id }).Draw(t, "GPUs")
}

func (m *machine) reserves(t *rapid.T) {
	r := model.Reservation{GPUs: anyGPUs(t), Memory: rapid.SampledFrom([]units.Bytes{0, 0, 6 * units.GiB, 20 * units.GiB}).Draw(t, "memory"), By: "root"}
	if rapid.Bool().Draw(t, "for a user") {
		r.User = rapid.SampledFrom([]string{"ada", "bob", ""}).Draw(t, "user")
	} else {
		r.Account = "lab"
	}
	r.From = m.now.Add(rapid.SampledFrom([]time.Duration{-time.Hour, 0, time.Minute, 3 * time.Hour, 5 * time.Hour}).Draw(t, "from"))
	r.Until = r.From.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, 2 * time.Hour}).Draw(t, "for"))
	m.step(t, model.Reserved{At: m.now, Reservation: r})
}

func (m *machine) unreserves(t *rapid.T) {
	m.step(t, model.Unreserved{At: m.now, ID: rapid.IntRange(0, m.keptBefore+1).Draw(t, "reservation")})
}

// pins moves a task, and checks that it is pinned to these GPUs, or to none.
func (m *machine) pins(t *rapid.T) {
	ev := model.Pinned{At: m.now, Task: m.aTask(t), GPUs: anyGPUs(t), By: "ada"}
	before, _ := m.s.Task(ev.Task)
	m.step(t, ev)
	after, there := m.s.Task(ev.Task)
	if !there {
		return
	}
	want := slices.DeleteFunc(slices.Sorted(slices.Values(ev.GPUs)), func(id model.GPUID) bool {
		return before.GPUs > 1 && slices.ContainsFunc(m.s.GPUs(), func(g model.GPU) bool { return g.ID == id && g.MIG })
	})
	if before.GPUs == 0 || len(ev.GPUs) > 0 && len(want) < before.GPUs {
		want = before.Pinned
	}
	if !slices.Equal(after.Pinned, want) {
		t.Fatalf("%+v: it goes to %v, and did to %v", ev, after.Pinned, before.Pinned)
	}
	if a := after.Current(); a != nil && (after.Phase == model.Launching || after.Phase == model.Running) && slices.ContainsFunc(a.Grants, func(g model.Grant) bool { return len(want) > 0 && !slices.Contains(want, g.GPU) }) {
		t.Fatalf("%+v: it is %s on %+v", ev, after.Phase, a.Grants)
	}
}

// bookReserved records a valid reservation.
func (m *machine) bookReserved(r model.Reservation) {
	now := m.s.Now()
	r.From = max(r.From, now)
	if r.Until > r.From && len(r.GPUs) > 0 && (r.User == "") != (r.Account == "") {
		m.keptBefore++
		r.ID = m.keptBefore
		m.kept = append(m.kept, r)
	}
}

// checkLaunchPlace checks that no task is launched where its run would overlap another user's
// reservation, or on a GPU to which it is not pinned.
func (m *machine) checkLaunchPlace(t *rapid.T, l model.Launch) {
	now := m.s.Now()
	task, _ := m.s.Task(l.Task)
	for _, grant := range l.Grants {
		if len(task.Pinned) > 0 && !slices.Contains(task.Pinned, grant.GPU) {
			t.Fatalf("launched %+v, and it goes to %v", l, task.Pinned)
		}
		for _, r := range m.kept {
			if !slices.Contains(r.GPUs, grant.GPU) || r.User != "" && r.User == task.User || r.Account != "" && r.Account == task.Account || r.Until <= now {
				continue
			}
			run, basis := m.s.predictor.RunTime(task)
			if told := m.told[l.Task]; told > 0 {
				run, basis = told, predict.Known
			}
			if run = time.Duration(float64(run) * 1.5); basis != predict.Known {
				run = time.Duration(float64(run) / 1.5 * 2)
			}
			if basis == predict.Guessed {
				run = 4 * time.Hour
			}
			if task.TimeLimit > 0 && (task.TimeLimit < run || basis == predict.Guessed) {
				run = task.TimeLimit
			}
			if r.From > now && now.Add(run) <= r.From {
				continue
			}
			left := r.Memory
			page := model.GPU{}
			for _, g := range m.s.GPUs() {
				if g.ID == grant.GPU {
					page = g
				}
			}
			for _, other := range page.Residents {
				if of, ok := m.s.Task(other.Task); ok && (r.User != "" && r.User == of.User || r.Account != "" && r.Account == of.Account) {
					left -= max(other.Grant, other.Used)
				}
			}
			if r.Memory == 0 || l.Alone || m.opt.Booking != model.BookSamples && page.Free(m.opt.Headroom) < left {
				t.Fatalf("launched %+v, and %+v is reserved", l, r)
			}
		}
	}
}
