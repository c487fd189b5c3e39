package policy

import (
	"slices"
	"testing"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// fakeView answers from tables: free memory and ring distance by index, the seconds that
// a candidate adds, and the rules that refuse it, by candidate and index.
type fakeView struct {
	free   []units.Bytes
	ring   []int
	ids    []int
	added  [][]float64
	rules  [][]model.Rule
	closed map[int]model.TaskID
}

func (v *fakeView) FreeMemory(g *model.GPU) units.Bytes { return v.free[g.Index] }
func (v *fakeView) RingDistance(g *model.GPU) int       { return v.ring[g.Index] }
func (v *fakeView) ClosedTo(_ *model.Task, g *model.GPU) model.TaskID {
	return v.closed[g.Index]
}
func (v *fakeView) Candidates(*model.Task) []int { return v.ids }
func (v *fakeView) SlowdownRule(g *model.GPU, candidate int) model.Rule {
	if v.rules == nil {
		return ""
	}
	return v.rules[candidate][g.Index]
}
func (v *fakeView) Added(g *model.GPU, candidate int) (float64, model.Rule) {
	return v.added[candidate][g.Index], v.SlowdownRule(g, candidate)
}

// gpus returns GPUs with the given SM activities, with indices 0, 1, ...
func gpus(smact ...float64) (all []*model.GPU) {
	for i, x := range smact {
		all = append(all, &model.GPU{GPUInfo: model.GPUInfo{Index: i}, SMACT: x})
	}
	return all
}

func indices(all []*model.GPU) (is []int) {
	for _, g := range all {
		is = append(is, g.Index)
	}
	return is
}

// TestOrders checks which GPU each policy prefers. Equal ones keep the order of the list.
func TestOrders(t *testing.T) {
	v := &fakeView{free: []units.Bytes{20, 30, 10, 30}, ring: []int{3, 0, 1, 2}}
	for name, want := range map[string][]int{
		"exclusive":   {0, 1, 2, 3},
		"first-fit":   {0, 1, 2, 3},
		"round-robin": {1, 2, 3, 0},
		"best-fit":    {2, 0, 1, 3},
		"magm":        {1, 3, 0, 2},
		"lucid":       {1, 3, 0, 2},
		"lug":         {2, 0, 3, 1},
		"mug":         {1, 0, 3, 2},
	} {
		p, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		all := gpus(.5, .9, .1, .5)
		slices.SortStableFunc(all, func(a, b *model.GPU) int { return p.Order(v, a, b) })
		if got := indices(all); !slices.Equal(got, want) {
			t.Errorf("%s takes %v, want %v", name, got, want)
		}
	}
}

// TestEveryPolicyChooses checks that each policy has a name, a description, and one way
// to choose, and that an unknown name is refused with the names that exist.
func TestEveryPolicyChooses(t *testing.T) {
	for _, name := range Names() {
		p, err := Named(name)
		if err != nil || Doc(name) == "" || (p.Order == nil) == (p.Pick == nil) {
			t.Errorf("%s: %v, description %q, order %v, pick %v", name, err, Doc(name), p.Order != nil, p.Pick != nil)
		}
	}
	if _, err := Named("fastest"); err == nil || Doc("fastest") != "" {
		t.Errorf("an unknown policy: %v, description %q", err, Doc("fastest"))
	}
}

// TestLeastAdded checks the choice of policy carma: the least added seconds among the GPUs
// that are not refused, different GPUs for the parts of a task, and none if one is short.
func TestLeastAdded(t *testing.T) {
	const slow = model.RuleSlowdown
	for _, row := range []struct {
		name  string
		ids   []int
		added [][]float64
		rules [][]model.Rule
		avoid []int
		want  []int
	}{
		{"the least", []int{0}, [][]float64{{300, 100, 200}}, nil, nil, []int{1}},
		{"a refused one does not count", []int{0}, [][]float64{{300, 100, 200}}, [][]model.Rule{{"", slow, ""}}, nil, []int{2}},
		{"all refused", []int{0}, [][]float64{{1, 2, 3}}, [][]model.Rule{{slow, slow, slow}}, nil, nil},
		{"one to avoid costs an hour", []int{0}, [][]float64{{300, 100, 4000}}, nil, []int{1}, []int{0}},
		{"and is taken if others cost more", []int{0}, [][]float64{{4000, 100, 4001}}, nil, []int{1}, []int{1}},
		{"each part gets its own", []int{0, 0}, [][]float64{{300, 100, 200}}, nil, nil, []int{1, 2}},
		{"parts differ", []int{0, 1}, [][]float64{{10, 20, 30}, {5, 90, 40}}, nil, nil, []int{0, 2}},
		{"one part finds none", []int{0, 1}, [][]float64{{10, 20, 30}, {1, 1, 1}}, [][]model.Rule{{"", "", ""}, {slow, slow, slow}}, nil, nil},
	} {
		all := gpus(0, 0, 0)
		task := &model.Task{Request: model.Request{GPUs: len(row.ids)}}
		for _, i := range row.avoid {
			all[i].ID = "GPU-bad"
			task.Avoid = append(task.Avoid, "GPU-bad")
		}
		v := &fakeView{ids: row.ids, added: row.added, rules: row.rules}
		if got := indices(leastAdded(v, task, all)); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// TestSlowdownFilter checks that a GPU is a candidate if it takes one part of a task, and
// none if nothing can be predicted there.
func TestSlowdownFilter(t *testing.T) {
	const slow = model.RuleSlowdown
	g := gpus(0)[0]
	v := &fakeView{ids: []int{0, 1}, rules: [][]model.Rule{{slow}, {""}}}
	if rule := slowdownFilter(v, &model.Task{}, g); rule != "" {
		t.Errorf("takes the second part, but %q", rule)
	}
	v.rules[1][0] = model.RuleWait
	if rule := slowdownFilter(v, &model.Task{}, g); rule != model.RuleWait {
		t.Errorf("takes no part, but %q", rule)
	}
	v.closed = map[int]model.TaskID{0: 7}
	if rule := slowdownFilter(v, &model.Task{}, g); rule != model.RuleUnseen {
		t.Errorf("closed, but %q", rule)
	}
}

// TestPublishedFilters checks the limits of Lucid and Horus.
func TestPublishedFilters(t *testing.T) {
	load := func(smact float64) interference.Load { return interference.Load{SMACT: smact} }
	beside := func(loads ...float64) *model.GPU {
		g := gpus(0)[0]
		for i, x := range loads {
			g.Residents = append(g.Residents, model.Resident{Task: model.TaskID(i + 1), Load: load(x)})
		}
		return g
	}
	for _, row := range []struct {
		filter func(View, *model.Task, *model.GPU) model.Rule
		g      *model.GPU
		mine   float64
		want   model.Rule
	}{
		{lucidFilter, beside(.3), .3, ""},                // medium and medium
		{lucidFilter, beside(.7), .1, ""},                // jumbo and tiny
		{lucidFilter, beside(.7), .3, model.RuleSharing}, // jumbo and medium
		{lucidFilter, beside(.1, .1), .1, model.RuleSharing},
		{horusFilter, beside(.1), .1, ""}, // kernels run for the cube root of the activity: 0.46 each
		{horusFilter, beside(.2), .1, model.RuleUtilization},
	} {
		task := &model.Task{Request: model.Request{GPUs: 1}}
		task.Expected.Loads = []interference.Load{load(row.mine)}
		if got := row.filter(nil, task, row.g); got != row.want {
			t.Errorf("beside %v with %.1f: %q, want %q", row.g.Residents, row.mine, got, row.want)
		}
	}
}
