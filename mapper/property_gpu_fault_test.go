package mapper

import (
	"maps"
	"slices"

	"carma/mapper/model"

	"pgregory.net/rapid"
)

// resets reports that some GPUs were reset. They may be broken or not, and known or unknown.
func (m *machine) resets(t *rapid.T) {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom([]model.GPUID{"a0", "a1", "a2", "b0", "b1", "x"}), 0, 3, func(id model.GPUID) model.GPUID { return id }).Draw(t, "reset")
	m.step(t, model.GPUsReset{At: m.now, GPUs: some})
}

// anyBoots sets the boot of the GPUs' machines, or leaves it unknown.
func anyBoots(t *rapid.T, gpus []model.GPUInfo) []model.GPUInfo {
	gpus, boots := slices.Clone(gpus), map[string]string{}
	for i := range gpus {
		g := &gpus[i]
		if _, drawn := boots[g.Node]; !drawn {
			boots[g.Node] = rapid.SampledFrom([]string{"", "first", "first", "first", "second"}).Draw(t, "boot")
		}
		g.Boot = boots[g.Node]
	}
	return gpus
}

// bookBroken records which GPUs have a persistent fault, each with the boot at that time,
// for launch to check.
func (m *machine) bookBroken(ev model.Event) {
	switch e := ev.(type) {
	case model.Sampled:
		for _, g := range e.GPUs {
			if _, already := m.broken[g.ID]; g.UntilReset && g.Fault != "" && !already && m.isKnown(g.ID) {
				m.broken[g.ID] = m.boots[g.ID]
			}
		}
	case model.GPUsReset:
		for _, id := range e.GPUs {
			delete(m.broken, id)
		}
	case model.GPUsCordoned:
		for _, id := range e.GPUs {
			if e.Closure == nil {
				delete(m.broken, id)
			}
		}
	case model.GPUsFound:
		is := map[string]string{}
		for _, g := range e.GPUs {
			m.boots[g.ID], is[g.Node] = g.Boot, g.Boot
		}
		maps.DeleteFunc(m.broken, func(id model.GPUID, was string) bool {
			now := is[m.node(id)]
			return now != "" && was != "" && now != was
		})
	}
}
