package booking

import (
	"carma/configs/workloads"
	"carma/estimator"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// Catalogue estimates from the measured workloads that ship with carma.
type Catalogue struct{ *estimator.Catalogue }

// NewCatalogue makes a catalogue of the shipped workloads. A workload's name stands for
// its default measurement (campaign v2). NAME@v1 stands for its measurement in campaign
// v1; traces that replay that campaign use it.
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

// Loads returns a workload's load on each of its GPUs.
func Loads(p workloads.Profile) []interference.Load {
	var all []interference.Load
	for _, a := range p.Activities() {
		all = append(all, interference.Load{SMACT: a.SMACT, SMOCC: a.SMOCC, DRAMA: a.DRAMA, Step: p.StepTime().Seconds()})
	}
	return all
}

// Estimate answers q. It accepts more spellings of a model than its embedded catalogue.
func (c Catalogue) Estimate(q estimator.Query) (estimator.Estimate, error) {
	return c.Catalogue.Estimate(spelled(q))
}

// Expect answers q. It accepts more spellings of a model too.
func (c Catalogue) Expect(q estimator.Query) model.Expected { return c.Catalogue.Expect(spelled(q)) }

func spelled(q estimator.Query) estimator.Query {
	if q.Model == "" { // most tasks name no model
		return q
	}
	if _, err := workloads.Find(q.Model); err != nil {
		if same := workloads.ByModel(q.Model); len(same) > 0 {
			q.Model = same[0].Model
		}
	}
	return q
}

// InCampaign returns the catalogue's name for a workload's measurement in a campaign.
func InCampaign(workload, campaign string) string {
	if campaign == "" || campaign == workloads.DefaultCampaign {
		return workload
	}
	return workload + "@" + campaign
}
