package fairshare

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// place puts a task of a user on the GPU of a ledger, with a grant.
func place(l *ledger.Ledger, us *Users, id model.TaskID, user string, grant units.Bytes) *model.Task {
	t := &model.Task{
		Request: model.Request{ID: id, User: user, GPUs: 1}, Phase: model.Running,
		Attempts: []model.Attempt{{N: 1, Grants: []model.Grant{{GPU: "a", Memory: grant}}}},
	}
	l.AddTask(t)
	l.GPU("a").Add(model.Resident{Task: id, Grant: grant}, 0)
	us.Occupy(t)
	return t
}

func oneGPU() (*ledger.Ledger, *Users) {
	l := ledger.New(model.Options{Order: model.OrderFair, FairHalfLife: time.Hour}, false)
	l.AddGPU(&model.GPU{GPUInfo: model.GPUInfo{ID: "a", Capacity: 8 * units.GiB}})
	return l, New(l)
}

// TestUse checks that a user is charged the share of the GPU for the time, that use decays
// by the half-life, and that the user with less use goes first.
func TestUse(t *testing.T) {
	l, us := oneGPU()
	task := place(l, us, 1, "ada", 4*units.GiB)
	us.Enqueued(&model.Task{Request: model.Request{ID: 2, User: "bob"}})
	l.Begin(units.Instant(0).Add(time.Hour))
	us.UpdateRanks()
	ada, bob := us.Of(model.UserAccount{User: "ada"}), us.Of(model.UserAccount{User: "bob"})
	// Half a GPU for an hour, decayed meanwhile: 1800 s x (1 - 1/2) / ln 2.
	if want := 1800 * 0.5 / math.Ln2; math.Abs(ada.Use-want) > 1e-6*want {
		t.Errorf("ada has used %v GPU-seconds, want %v", ada.Use, want)
	}
	if CompareUsers(bob, ada) >= 0 {
		t.Error("bob, who has used nothing, does not go first")
	}
	before := ada.Use
	us.Release(task)
	l.Begin(units.Instant(0).Add(2 * time.Hour))
	us.UpdateRanks()
	if math.Abs(ada.Use-before/2) > 1e-6*before {
		t.Errorf("an hour later ada's use is %v, want %v", ada.Use, before/2)
	}
}

// TestAudit checks that the audit compares each sum with the ledger.
func TestAudit(t *testing.T) {
	l, us := oneGPU()
	place(l, us, 1, "ada", 4*units.GiB)
	waits := &model.Task{Request: model.Request{ID: 2, User: "bob"}}
	us.Enqueued(waits)
	if err := us.AuditUsers([]*model.Task{waits}); err != nil {
		t.Fatal(err)
	}
	if err := us.AuditUsers(nil); err == nil {
		t.Error("a waiting task that is counted and does not wait is not found")
	}
	l.GPU("a").Residents[0].Grant += units.GiB
	if err := us.AuditUsers([]*model.Task{waits}); err == nil {
		t.Error("a grant that was not reported is not found")
	}
}
