package mapper

import (
	"cmp"
	"time"

	"carma/internal/units"
	"carma/mapper/explain"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// anyUserRules draws the options that concern users; most are usually off, because otherwise
// other cases would never occur.
func anyUserRules(t *rapid.T, o *model.Options) {
	o.FairHalfLife = rapid.SampledFrom([]time.Duration{0, time.Minute, 24 * time.Hour}).Draw(t, "half-life")
	o.FairWeights = rapid.SampledFrom([][]model.Weight{nil, {{User: "ada", Weight: 2}}, {{User: "ada", Weight: 0.5}, {User: "bob", Weight: 100}}}).Draw(t, "weights")
	o.FairAccounts = rapid.SampledFrom([][]model.Weight{nil, nil, {{User: model.EveryAccount, Weight: 1}}, {{User: "lab", Weight: 3}}}).Draw(t, "account weights")
	o.QuotaTasks = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "quota tasks")
	o.QuotaGPUs = rapid.SampledFrom([]int{0, 0, 0, 2, 3}).Draw(t, "quota GPUs")
	o.QuotaMemory = rapid.SampledFrom([]units.Bytes{0, 0, 0, 16 * units.GiB, 40 * units.GiB}).Draw(t, "quota memory")
	o.Quotas = rapid.SampledFrom([][]model.Quota{
		nil, nil, nil, {{Name: "ada", Tasks: model.NoQuota, GPUs: 3}}, {{Name: "bob", Memory: 40 * units.GiB}, {Name: "lab", Account: true, Tasks: 2}},
		{{Name: "lab", Account: true, GPUs: 3, Memory: 40 * units.GiB}},
	}).Draw(t, "quotas")
	o.Slot = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second, time.Hour}).Draw(t, "slot option")
}

func (m *machine) quotas() bool {
	return m.opt.QuotaTasks > 0 || m.opt.QuotaGPUs > 0 || m.opt.QuotaMemory > 0 || m.opt.Quotas != nil
}

// limits returns the quotas for a task: its user's, and its account's.
func (m *machine) limits(r model.Request) []model.Quota {
	own := model.Quota{Name: r.User, Tasks: m.opt.QuotaTasks, GPUs: m.opt.QuotaGPUs, Memory: m.opt.QuotaMemory}
	all := []model.Quota{}
	for _, q := range m.opt.Quotas {
		switch {
		case q.Account && q.Name == r.Account:
			all = append(all, q)
		case !q.Account && q.Name == r.User:
			own.Tasks, own.GPUs, own.Memory = cmp.Or(q.Tasks, own.Tasks), cmp.Or(q.GPUs, own.GPUs), cmp.Or(q.Memory, own.Memory)
		}
	}
	return append(all, own)
}

// held sums the running tasks of a user, or of an account, in the accounts. The grants are the
// present ones: grants grow and shrink after the launch.
func (m *machine) held(of model.Quota) (tasks, gpus int, memory units.Bytes) {
	for id := range m.live {
		if r := m.shape[id]; !of.Account && r.User != of.Name || of.Account && r.Account != of.Name {
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

// checkLaunchQuota checks that no user exceeds the quotas after a launch.
func (m *machine) checkLaunchQuota(t *rapid.T, l model.Launch) {
	for _, q := range m.limits(m.shape[l.Task]) {
		tasks, gpus, memory := m.held(q)
		if q.Tasks > 0 && tasks > q.Tasks || q.GPUs > 0 && gpus > q.GPUs || q.Memory > 0 && memory > q.Memory {
			t.Fatalf("launched %+v: there are %d tasks on %d GPUs with %s; quota %+v", l, tasks, gpus, memory, q)
		}
	}
}

// checkQuota checks that a task that waits for a quota would exceed it, and has that reason.
func (m *machine) checkQuota(t *rapid.T, task model.Task, why explain.Why) {
	over := false
	for _, q := range m.limits(task.Request) {
		tasks, gpus, memory := m.held(q)
		over = over || q.Tasks > 0 && tasks >= q.Tasks || q.GPUs > 0 && gpus+task.GPUs > q.GPUs
		need := task.NextGrant
		if m.s.RunsAlone(&task) {
			need = 32 * units.GiB // the largest card
		}
		over = over || q.Memory > 0 && memory+need*units.Bytes(task.GPUs) > q.Memory
	}
	if !over {
		t.Fatalf("task %d waits for a quota; what is placed is %v: %+v", task.ID, m.live, why)
	}
	if m.up && len(m.s.Breakers()) == 0 && why.Rule != model.RuleQuota {
		t.Fatalf("task %d waits for a quota and says %+v", task.ID, why)
	}
}

// checkSlotStop checks that a task is asked to stop for others only after its slot, and
// only if waiting tasks then go before it.
func (m *machine) checkSlotStop(t *rapid.T, stop model.Stop) {
	if stop.Reason.Code != model.ReasonSlotUsed {
		return
	}
	task, ok := m.s.Task(stop.Task)
	if !ok || !task.SlotUsed && task.Phase != model.Suspending {
		t.Fatalf("%+v, and the task is %+v", stop, task)
	}
	slot := m.opt.Slot
	if own := m.shape[stop.Task].Slot; slot == 0 || own > 0 && own < slot {
		slot = own
	}
	if ran := m.s.Now().Sub(max(task.Last().Started, m.turn[stop.Task])); slot == 0 || task.Last().Started == 0 || ran < slot {
		t.Fatalf("%+v after %s of a slot of %s", stop, ran, slot)
	}
	for _, other := range m.waiting() {
		if other.Priority >= task.Priority || other.GoesFirst() { // recovering and resuming tasks go before all priorities
			return
		}
	}
	t.Fatalf("%+v, and nobody waits who could go first", stop)
}
