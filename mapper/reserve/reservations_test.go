package reserve

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/queue"
)

// begin returns reservations of a ledger with two GPUs of 40 GiB on one machine with 64
// GiB of host memory, and the queue.
func begin(t *testing.T, opt model.Options) (*Reservations, *queue.Queue) {
	t.Helper()
	l := ledger.New(opt, false)
	l.Begin(units.Instant(time.Hour))
	if err := l.Restore(ledger.Snapshot{
		Now: units.Instant(time.Hour), Options: opt,
		GPUs: []*model.GPU{
			{GPUInfo: model.GPUInfo{ID: "a", Node: "n", Index: 0, Capacity: 40 * units.GiB}},
			{GPUInfo: model.GPUInfo{ID: "b", Node: "n", Index: 1, Capacity: 40 * units.GiB}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	us, pr := fairshare.New(l), predict.New(l)
	q := queue.New(l, us, pr)
	return New(l, pr, q), q
}

// task adds a waiting task with a time limit of an hour.
func task(q *queue.Queue, id model.TaskID, user string, need units.Bytes) *model.Task {
	t := &model.Task{Request: model.Request{ID: id, User: user, GPUs: 1, TimeLimit: time.Hour}, Phase: model.Queued, NextGrant: need}
	q.AddTask(t)
	q.Add(t)
	return t
}

// TestAgainst checks that a reservation keeps others' tasks off its GPUs from the time on
// at which they would run into it, leaves them what it does not reserve, and ends.
func TestAgainst(t *testing.T) {
	rs, q := begin(t, model.Options{})
	ann, bob := task(q, 1, "ann", 20*units.GiB), task(q, 2, "bob", 20*units.GiB)
	from := rs.Now().Add(2 * time.Hour)
	rs.Add(model.Reserved{Reservation: model.Reservation{User: "ann", GPUs: []model.GPUID{"a", "a"}, From: from, Until: from.Add(time.Hour), Memory: 30 * units.GiB}})
	if len(rs.Reservations()) != 1 || rs.LastReservation() != 1 || !slices.Equal(rs.Reservations()[0].GPUs, []model.GPUID{"a"}) {
		t.Fatalf("reserved: %+v", rs.Reservations())
	}
	if rs.Against(bob, rs.GPU("a")) != nil {
		t.Error("a task that ends before the reservation begins may not run")
	}
	rs.Begin(from.Add(-30 * time.Minute))
	if rs.Against(bob, rs.GPU("a")) == nil || rs.Against(bob, rs.GPU("b")) != nil || rs.Against(ann, rs.GPU("a")) != nil {
		t.Errorf("against bob on a %v, on b %v, against ann %v", rs.Against(bob, rs.GPU("a")), rs.Against(bob, rs.GPU("b")), rs.Against(ann, rs.GPU("a")))
	}
	if got := rs.Withheld(bob, rs.GPU("a")); got != 30*units.GiB {
		t.Errorf("withheld from bob are %s", got)
	}
	if bob.NextGrant = 5 * units.GiB; rs.Against(bob, rs.GPU("a")) != nil {
		t.Error("a task that fits beside the reserved memory may not run")
	}
	rs.Begin(from.Add(time.Hour))
	if bob.NextGrant = 20 * units.GiB; rs.Against(bob, rs.GPU("a")) != nil {
		t.Error("the reservation does not end")
	}
	if !rs.Drop(func(r *model.Reservation) bool { return r.ID == 1 }) || rs.Any() {
		t.Errorf("left are %+v", rs.Reservations())
	}
}

// TestHead checks that GPUs of the head reservation are its task's, that dropping it for
// another task changes nothing, and that a section of a snapshot restores it.
func TestHead(t *testing.T) {
	rs, q := begin(t, model.Options{})
	first := task(q, 1, "ann", 20*units.GiB)
	rs.SetHead(Head{Task: first.ID, GPUs: []model.GPUID{"b"}})
	if rs.ReservedFor("b") != 1 || rs.ReservedFor("a") != 0 {
		t.Errorf("reserved for %d and %d", rs.ReservedFor("a"), rs.ReservedFor("b"))
	}
	c := New(rs.Ledger, predict.New(rs.Ledger), q)
	if err := c.Restore(rs.Save()); err != nil || c.Head().Task != 1 {
		t.Errorf("restored: %+v, %v", c.Head(), err)
	}
	if err := c.Restore(Snapshot{LastRes: 1, Reserved: []*model.Reservation{{ID: 2, GPUs: []model.GPUID{"a"}}}}); err == nil {
		t.Error("a reservation with a number that was not given was restored")
	}
	if rs.DropHead(2); rs.Head().Task != 1 {
		t.Error("the end of another task drops it")
	}
	if rs.DropHead(1); rs.ReservedForHead(rs.GPU("b")) != 0 {
		t.Error("it stays after the end of its task")
	}
}

// TestHostMemory checks that a machine's reserved memory is for the first task in queue
// order, and that a reason names the task for which it is.
func TestHostMemory(t *testing.T) {
	rs, q := begin(t, model.Options{})
	h := rs.OpenHost("n")
	h.HostInfo, h.Known = model.HostInfo{Node: "n", Memory: 64 * units.GiB, CPUs: 8000, Total: 80 * units.GiB}, true
	h.Settle()
	first, second := task(q, 1, "ann", units.GiB), task(q, 2, "bob", units.GiB)
	first.HostMem, second.HostMem = 65*units.GiB, 8*units.GiB
	if no := rs.HostShort(first); no.Code != model.ReasonHostMemory {
		t.Fatalf("task 1 wants more than there is: %+v", no)
	}
	first.HostMem = 48 * units.GiB
	if no := rs.HostShort(first); no.Code != "" {
		t.Fatalf("task 1 fits: %+v", no)
	}
	rs.SetHead(Head{Task: first.ID, Host: &hostReservation{Node: "n"}})
	if no := rs.HostShort(second); no.Code != model.ReasonHostKept || no.Task != 1 {
		t.Errorf("task 2 may overtake task 1: %+v", no)
	}
	if no := rs.HostShort(first); no.Code != "" {
		t.Errorf("task 1 is kept from what is reserved for it: %+v", no)
	}
	if no := rs.HelpersFit("n", "suite", units.GiB, 1); no.Code != model.ReasonHostKept {
		t.Errorf("helpers may take it: %+v", no)
	}
}
