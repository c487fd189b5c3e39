package booking

import (
	"carma/configs/workloads"
	"carma/estimator"
	"carma/mapper"
	"carma/mapper/interference"
)

// Catalogue is the estimator over the measured workloads that ship with carma.
type Catalogue struct{ *estimator.Catalogue }

// NewCatalogue wires the shipped workloads to the estimator. Each is known by
// its name with its default measurement (campaign v2), by NAME@v1 with that of
// campaign v1, for traces that replay that campaign.
func NewCatalogue() Catalogue {
	var entries []estimator.Entry
	for _, p := range workloads.All() {
		names := append([]string{p.Solo.ID}, p.Aliases...)
		if m, err := p.Campaign(""); err == nil {
			entries = append(entries, estimator.Entry{
				Name: p.Name, Aliases: names, Model: p.Model, Dataset: p.Dataset,
				Batch: p.BatchSize, GPUs: p.GPUs, Memory: m.Memory, Loads: Loads(p), RunTime: m.RunTime,
			})
		}
		if m, err := p.Campaign("v1"); err == nil {
			entries = append(entries, estimator.Entry{Name: InCampaign(p.Name, "v1"), GPUs: p.GPUs, Memory: m.Memory})
		}
	}
	return Catalogue{estimator.NewCatalogue(entries)}
}

// Loads is what a workload does to each of its GPUs.
func Loads(p workloads.Profile) []interference.Load {
	var all []interference.Load
	for _, a := range p.Activities() {
		all = append(all, interference.Load{SMACT: a.SMACT, SMOCC: a.SMOCC, DRAMA: a.DRAMA, Step: p.StepTime().Seconds()})
	}
	return all
}

// Estimate also knows the further spellings of a model.
func (c Catalogue) Estimate(q estimator.Query) (estimator.Estimate, error) {
	return c.Catalogue.Estimate(spelled(q))
}

// Expect does as well.
func (c Catalogue) Expect(q estimator.Query) mapper.Expected { return c.Catalogue.Expect(spelled(q)) }

func spelled(q estimator.Query) estimator.Query {
	if q.Model == "" { // as of most tasks
		return q
	}
	if _, err := workloads.Find(q.Model); err != nil {
		if same := workloads.ByModel(q.Model); len(same) > 0 {
			q.Model = same[0].Model
		}
	}
	return q
}

// InCampaign is the catalogue's name of a workload as one campaign measured it.
func InCampaign(workload, campaign string) string {
	if campaign == "" || campaign == workloads.DefaultCampaign {
		return workload
	}
	return workload + "@" + campaign
}
