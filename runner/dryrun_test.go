package runner

import (
	"testing"

	"carma/internal/units"
	"carma/runner/api"
)

// TestPreview checks that a preview shows which task would run on which GPUs, and changes
// nothing.
func TestPreview(t *testing.T) {
	g := newRig(t)
	g.script("good", printing(0))
	tasks := []api.Submit{
		{Image: "good", Part: "a", Mem: int64(30 * units.GiB)}, {Image: "good", Part: "b", EstModel: "resnet50", BatchSize: 64},
		{Image: "good", Part: "c", Mem: int64(30 * units.GiB), GPUs: 2}, {Image: "good", Part: "d", Mem: 1 << 30, After: []api.Dependency{{Part: "a"}}},
	}
	p, err := g.api.Preview(g.ctx(), api.Submission{Group: "plan", Tasks: tasks})
	if err != nil || len(p.Tasks) != 4 || p.Group != "plan" {
		t.Fatalf("%+v, %v", p, err)
	}
	if v := p.Tasks[0]; len(v.GPUs) != 1 || v.Waits != "" || v.Need != int64(30*units.GiB) || v.Estimate.Method != "declared" || v.Name != "plan-a" {
		t.Errorf("the first: %+v", v)
	}
	if v := p.Tasks[1]; v.Estimate.Method != "catalogue" || v.Estimate.Memory < int64(7*units.GiB) || len(v.GPUs) != 1 || v.GPUs[0] == p.Tasks[0].GPUs[0] {
		t.Errorf("the second: %+v", v)
	}
	if v := p.Tasks[2]; len(v.GPUs) != 0 || v.Waits == "" {
		t.Errorf("the third: %+v", v)
	}
	if v := p.Tasks[3]; v.Waits != "it waits for task 1 to succeed" {
		t.Errorf("the fourth: %+v", v)
	}
	if list, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true}); err != nil || len(list) > 0 {
		t.Errorf("it has submitted %+v, %v", list, err)
	}
	all := g.submitAll(api.Submission{Group: "plan", Tasks: tasks[:1]})
	if all.Tasks[0].ID != 1 {
		t.Errorf("the next number is %d", all.Tasks[0].ID)
	}
	g.groupEnd("plan")
}
