package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"carma/mapper/model"
)

// Policy is one row of the policy table: which GPUs are candidates beyond the
// preconditions that all policies share, and in which order they are taken.
type Policy struct {
	Name string
	Doc  string
	// IdleOnly: one task per GPU.
	IdleOnly bool
	// Filter rejects a non-idle GPU for a task, beyond the preconditions that all policies
	// share; it may be nil.
	Filter func(v View, t *model.Task, g *model.GPU) model.Rule
	// Order compares two GPUs that both fit; negative puts a first. Ties go
	// to the lower index.
	Order func(v View, a, b *model.GPU) int
	// Pick chooses among the GPUs that fit, in place of Order, and returns nil to wait.
	// It may be nil.
	Pick func(v View, t *model.Task, fitting []*model.GPU) []*model.GPU
	// Critical: a task that would end last starts ahead of its place in the queue.
	Critical bool
	// Defaults changes the default options to suit the policy.
	Defaults func(*model.Options)
}

var policies = []Policy{
	{
		Name: "exclusive", Doc: "one task per GPU: idle GPUs only, lowest index first",
		IdleOnly: true,
		Order:    func(View, *model.GPU, *model.GPU) int { return 0 },
	},
	{
		Name: "round-robin", Doc: "the next GPU in a ring, the position is kept",
		Order: func(v View, a, b *model.GPU) int { return cmp.Compare(v.RingDistance(a), v.RingDistance(b)) },
	},
	{
		Name: "first-fit", Doc: "the lowest index that fits",
		Order: func(View, *model.GPU, *model.GPU) int { return 0 },
	},
	{
		Name: "best-fit", Doc: "least free memory that fits first",
		Order: func(v View, a, b *model.GPU) int { return cmp.Compare(v.FreeMemory(a), v.FreeMemory(b)) },
	},
	{
		Name: "magm", Doc: "most available GPU memory first",
		Order: func(v View, a, b *model.GPU) int {
			return cmp.Compare(v.FreeMemory(b), v.FreeMemory(a))
		},
	},
	{
		Name: "lug", Doc: "least utilized GPU first, by SM activity",
		Order: func(_ View, a, b *model.GPU) int { return cmp.Compare(a.SMACT, b.SMACT) },
	},
	{
		Name: "mug", Doc: "most utilized GPU that passes the gate first: packs, and keeps whole GPUs free",
		Order:    func(_ View, a, b *model.GPU) int { return cmp.Compare(b.SMACT, a.SMACT) },
		Defaults: func(o *model.Options) { o.IdleFirst = false },
	},
	{
		Name: "lucid", Doc: "at most two tasks on a GPU whose sharing scores sum to at most 2; most free memory first",
		Filter:   lucidFilter,
		Order:    func(v View, a, b *model.GPU) int { return cmp.Compare(v.FreeMemory(b), v.FreeMemory(a)) },
		Defaults: func(o *model.Options) { o.MaxTasks, o.SMACTCap = 2, 0 },
	},
	{
		Name: "horus", Doc: "expected GPU utilizations on a GPU sum to at most 100 %; lowest sum first",
		Filter:   horusFilter,
		Order:    func(_ View, a, b *model.GPU) int { return cmp.Compare(a.Utilization(), b.Utilization()) },
		Defaults: func(o *model.Options) { o.SMACTCap = 0 },
	},
	{
		Name: "carma", Doc: "least added to all completion times by prediction, nobody slowed down beyond a cap (default)",
		Filter: slowdownFilter,
		Pick:   leastAdded, Critical: true,
		Defaults: func(o *model.Options) {
			o.SMACTCap, o.WarmUp = 0, 0 // it predicts what these wait to see
			o.Order, o.Ageing = model.OrderSJF, 8*time.Hour
			o.Learn, o.Shrink, o.LearnMemory = true, 5*time.Minute, 2*time.Minute
		},
	},
}

// Names lists the policies in the order of the table.
func Names() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.Name
	}
	return names
}

// Doc returns the one-line description of a policy, or "".
func Doc(name string) string {
	p, err := Named(name)
	if err != nil {
		return ""
	}
	return p.Doc
}

// Named returns the policy called name, or an error that lists the names.
func Named(name string) (*Policy, error) {
	for i := range policies {
		if policies[i].Name == name {
			return &policies[i], nil
		}
	}
	return nil, fmt.Errorf("unknown policy %q; there are %s", name, strings.Join(Names(), ", "))
}
