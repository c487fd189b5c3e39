package main

import (
	"carma/configs/workloads"
	"carma/estimator"
)

// catalogue is the estimator over the measured workloads that ship with carma.
type catalogue struct{ *estimator.Catalogue }

// newCatalogue wires the shipped workloads to the estimator. Each is known by
// its name with its default measurement (campaign v2), by NAME@v1 with that of
// campaign v1, for traces that replay that campaign.
func newCatalogue() catalogue {
	var entries []estimator.Entry
	for _, p := range workloads.All() {
		names := append([]string{p.Solo.ID}, p.Aliases...)
		if m, err := p.Campaign(""); err == nil {
			entries = append(entries, estimator.Entry{
				Name: p.Name, Aliases: names, Model: p.Model, Dataset: p.Dataset,
				Batch: p.BatchSize, GPUs: p.GPUs, Memory: m.Memory,
			})
		}
		if m, err := p.Campaign("v1"); err == nil {
			entries = append(entries, estimator.Entry{Name: inCampaign(p.Name, "v1"), GPUs: p.GPUs, Memory: m.Memory})
		}
	}
	return catalogue{estimator.NewCatalogue(entries)}
}

// Estimate also knows the further spellings of a model.
func (c catalogue) Estimate(q estimator.Query) (estimator.Estimate, error) {
	if _, err := workloads.Find(q.Model); err != nil {
		if same := workloads.ByModel(q.Model); len(same) > 0 {
			q.Model = same[0].Model
		}
	}
	return c.Catalogue.Estimate(q)
}

// inCampaign is the catalogue's name of a workload as one campaign measured it.
func inCampaign(workload, campaign string) string {
	if campaign == "" || campaign == workloads.DefaultCampaign {
		return workload
	}
	return workload + "@" + campaign
}
