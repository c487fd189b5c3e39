package mapper

import (
	"time"

	"carma/mapper/units"

	"pgregory.net/rapid"
)

// anyUserRules draws the options that are about users; most are off most of
// the time, or nothing else would ever be seen.
func anyUserRules(t *rapid.T, o *Options) {
	o.FairHalfLife = rapid.SampledFrom([]time.Duration{0, time.Minute, 24 * time.Hour}).Draw(t, "half-life")
	o.FairWeights = rapid.SampledFrom([][]Weight{nil, {{"ada", 2}}, {{"ada", 0.5}, {"bob", 100}}}).Draw(t, "weights")
	o.QuotaTasks = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "quota tasks")
	o.QuotaGPUs = rapid.SampledFrom([]int{0, 0, 0, 2, 3}).Draw(t, "quota GPUs")
	o.QuotaMemory = rapid.SampledFrom([]units.Bytes{0, 0, 0, 16 * units.GiB, 40 * units.GiB}).Draw(t, "quota memory")
	o.Slot = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second, time.Hour}).Draw(t, "slot option")
}

func (m *machine) quotas() bool {
	return m.opt.QuotaTasks > 0 || m.opt.QuotaGPUs > 0 || m.opt.QuotaMemory > 0
}

// held is what a user's running tasks come to in the books. The grants are
// those of now: they grow and shrink after the launch.
func (m *machine) held(name string) (tasks, gpus int, memory units.Bytes) {
	for id := range m.live {
		if m.shape[id].User != name {
			continue
		}
		tasks++
		gpus += m.shape[id].GPUs
		if now, ok := m.s.Task(id); ok && now.Current() != nil {
			for _, grant := range now.Current().Grants {
				memory += grant.Memory
			}
		}
	}
	return tasks, gpus, memory
}

// checkLaunchQuota: nobody has more than the quotas allow after a launch.
func (m *machine) checkLaunchQuota(t *rapid.T, l Launch) {
	tasks, gpus, memory := m.held(m.shape[l.Task].User)
	o := m.opt
	if o.QuotaTasks > 0 && tasks > o.QuotaTasks || o.QuotaGPUs > 0 && gpus > o.QuotaGPUs || o.QuotaMemory > 0 && memory > o.QuotaMemory {
		t.Fatalf("launched %+v: user %q has %d tasks on %d GPUs with %s; quotas %d, %d, %s", l, m.shape[l.Task].User, tasks, gpus, memory,
			o.QuotaTasks, o.QuotaGPUs, o.QuotaMemory)
	}
}

// checkQuota: a task that waits for a quota would be over it, and says so.
func (m *machine) checkQuota(t *rapid.T, task Task, why Why) {
	tasks, gpus, memory := m.held(task.User)
	over := m.opt.QuotaTasks > 0 && tasks >= m.opt.QuotaTasks || m.opt.QuotaGPUs > 0 && gpus+task.GPUs > m.opt.QuotaGPUs
	if m.opt.QuotaMemory > 0 {
		need := task.Need
		if m.s.alone(&task) {
			need = 32 * units.GiB // the largest card
		}
		over = over || memory+need*units.Bytes(task.GPUs) > m.opt.QuotaMemory
	}
	if !over {
		t.Fatalf("task %d waits for a quota; its user has %d tasks on %d GPUs with %s: %+v", task.ID, tasks, gpus, memory, why)
	}
	if m.up && len(m.s.Sick()) == 0 && why.Rule != RuleQuota {
		t.Fatalf("task %d waits for a quota and says %+v", task.ID, why)
	}
}

// checkSlotStop: a task is asked to stop for others only after its slot, and
// only if others wait that go before it then.
func (m *machine) checkSlotStop(t *rapid.T, stop Stop) {
	if stop.Reason.Code != ReasonSlotUsed {
		return
	}
	task, ok := m.s.Task(stop.Task)
	if !ok || !task.SlotUsed {
		t.Fatalf("%+v, and the task is %+v", stop, task)
	}
	slot := m.opt.Slot
	if own := m.shape[stop.Task].Slot; slot == 0 || own > 0 && own < slot {
		slot = own
	}
	if ran := m.s.Now().Sub(task.Last().Started); slot == 0 || task.Last().Started == 0 || ran < slot {
		t.Fatalf("%+v after %s of a slot of %s", stop, ran, slot)
	}
	for _, other := range m.waiting() {
		if other.Priority >= task.Priority || other.Phase == Recovering {
			return
		}
	}
	t.Fatalf("%+v, and nobody waits who could go first", stop)
}
