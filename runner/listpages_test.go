package runner

import (
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
)

// TestPages checks that a listing is split into pages with a maximum of tasks and bytes, and
// that the client requests all pages (F12, F13).
func TestPages(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("ok", printing(0))
	const n = 2300
	for done := 0; done < n; done += 100 {
		s := api.Submission{}
		for range 100 {
			s.Tasks = append(s.Tasks, api.Submit{Image: "ok", Mem: int64(units.GiB), Delay: 1 << 50, Labels: map[string]string{"n": "x"}})
		}
		if _, err := g.admission.SubmitAll(g.ctx(), request.Caller{Name: "root"}, s); err != nil {
			t.Fatal(err)
		}
	}
	for o, want := range map[api.ListOptions]int{
		{}: n, {All: true}: n, {Limit: 1}: 1, {Limit: 1500}: 1500, {Label: "n=x"}: n, {Before: 11}: 10, {User: "nobody"}: 0,
	} {
		list, err := g.api.Tasks(g.ctx(), o)
		if err != nil || len(list) != want {
			t.Errorf("%+v: %d tasks (%v), want %d", o, len(list), err, want)
		}
		for i := 1; i < len(list); i++ {
			if list[i].ID >= list[i-1].ID {
				t.Fatalf("%+v: task %d after %d", o, list[i].ID, list[i-1].ID)
			}
		}
	}
	some, _, err := g.query.Page(g.ctx(), api.ListOptions{Limit: 100_000})
	if err != nil || len(some) != record.PageTasks {
		t.Errorf("one page has %d tasks (%v)", len(some), err)
	}
}
