package mapper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/mapper/model"
)

// policy is one row of the policy table: which GPUs are candidates beyond the
// preconditions, and in which order they are taken.
type policy struct {
	name string
	doc  string
	// idleOnly: one task per GPU.
	idleOnly bool
	// gate rejects a non-idle GPU for a task, beyond the preconditions that all policies
	// share; it may be nil.
	gate func(pl *placer, t *model.Task, g *model.GPU) model.Rule
	// order compares two GPUs that both fit; negative puts a first. Ties go
	// to the lower index.
	order func(pl *placer, a, b *model.GPU) int
	// pick chooses among the GPUs that fit, in place of order, and returns nil to wait.
	// It may be nil.
	pick func(pl *placer, t *model.Task, fitting []*model.GPU) []*model.GPU
	// critical: a task that would end last starts ahead of its place in the queue.
	critical bool
	// defaults changes the default options to suit the policy.
	defaults func(*model.Options)
}

var policies = []policy{
	{
		name: "exclusive", doc: "one task per GPU: idle GPUs only, lowest index first",
		idleOnly: true,
		order:    func(*placer, *model.GPU, *model.GPU) int { return 0 },
	},
	{
		name: "round-robin", doc: "the next GPU in a ring, the position is kept",
		order: func(pl *placer, a, b *model.GPU) int { return cmp.Compare(pl.ringDistance(a), pl.ringDistance(b)) },
	},
	{
		name: "first-fit", doc: "the lowest index that fits",
		order: func(*placer, *model.GPU, *model.GPU) int { return 0 },
	},
	{
		name: "best-fit", doc: "least free memory that fits first",
		order: func(pl *placer, a, b *model.GPU) int { return cmp.Compare(pl.FreeMemory(a), pl.FreeMemory(b)) },
	},
	{
		name: "magm", doc: "most available GPU memory first",
		order: func(pl *placer, a, b *model.GPU) int {
			return cmp.Compare(pl.FreeMemory(b), pl.FreeMemory(a))
		},
	},
	{
		name: "lug", doc: "least utilized GPU first, by SM activity",
		order: func(_ *placer, a, b *model.GPU) int { return cmp.Compare(a.SMACT, b.SMACT) },
	},
	{
		name: "mug", doc: "most utilized GPU that passes the gate first: packs, and keeps whole GPUs free",
		order:    func(_ *placer, a, b *model.GPU) int { return cmp.Compare(b.SMACT, a.SMACT) },
		defaults: func(o *model.Options) { o.IdleFirst = false },
	},
	{
		name: "lucid", doc: "at most two tasks on a GPU whose sharing scores sum to at most 2; most free memory first",
		gate:     lucidGate,
		order:    func(pl *placer, a, b *model.GPU) int { return cmp.Compare(pl.FreeMemory(b), pl.FreeMemory(a)) },
		defaults: func(o *model.Options) { o.MaxTasks, o.SMACTCap = 2, 0 },
	},
	{
		name: "horus", doc: "expected GPU utilizations on a GPU sum to at most 100 %; lowest sum first",
		gate:     horusGate,
		order:    func(_ *placer, a, b *model.GPU) int { return cmp.Compare(a.Utilization(), b.Utilization()) },
		defaults: func(o *model.Options) { o.SMACTCap = 0 },
	},
	{
		name: "carma", doc: "least added to all completion times by prediction, nobody slowed down beyond a cap (default)",
		gate: (*placer).slowdownGate,
		pick: (*placer).leastAdded, critical: true,
		defaults: func(o *model.Options) {
			o.SMACTCap, o.WarmUp = 0, 0 // it predicts what these wait to see
			o.Order, o.Ageing = model.OrderSJF, 8*time.Hour
			o.Learn, o.Shrink, o.LearnMemory = true, 5*time.Minute, 2*time.Minute
		},
	},
}

// PolicyNames lists the policies in the order of the table.
func PolicyNames() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.name
	}
	return names
}

// PolicyDoc returns the one-line description of a policy, or "".
func PolicyDoc(name string) string {
	p, err := policyNamed(name)
	if err != nil {
		return ""
	}
	return p.doc
}

func policyNamed(name string) (*policy, error) {
	for i := range policies {
		if policies[i].name == name {
			return &policies[i], nil
		}
	}
	return nil, fmt.Errorf("unknown policy %q; there are %s", name, strings.Join(PolicyNames(), ", "))
}

// Validate returns an error for the first invalid option, with what to write instead.
func Validate(o model.Options) error {
	if _, err := policyNamed(o.Policy); err != nil {
		return err
	}
	return o.Validate()
}

// ringDistance returns the distance of a GPU from the ring's position.
func (pl *placer) ringDistance(g *model.GPU) int {
	return (g.Pos() - pl.ring + len(pl.GPUList())) % len(pl.GPUList())
}

// rank sorts the candidates for a task, best first: GPUs on which its infrastructure
// failed go last, idle ones first if so configured, then the policy's order.
func (pl *placer) rank(t *model.Task, candidates []*model.GPU) {
	order := func(a, b *model.GPU) int {
		if len(t.Avoid) > 0 {
			if c := model.CompareBools(t.Avoids(a), t.Avoids(b)); c != 0 {
				return c
			}
		}
		if pl.Options().IdleFirst {
			if c := model.CompareBools(!a.Idle(), !b.Idle()); c != 0 {
				return c
			}
		}
		return pl.policy.order(pl, a, b)
	}
	if t.GPUs == 1 { // only the first matters
		candidates[0] = slices.MinFunc(candidates, order)
		return
	}
	slices.SortStableFunc(candidates, order)
}
