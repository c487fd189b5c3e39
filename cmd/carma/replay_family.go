package main

import (
	"slices"
	"time"

	"carma/configs/workloads"
)

func familyTime(p workloads.Profile) time.Duration {
	var all []time.Duration
	for _, o := range workloads.ByModel(p.Model) {
		if o.Dataset != p.Dataset || o.GPUs != p.GPUs {
			continue
		}
		if c, err := o.Campaign("v2"); err == nil {
			all = append(all, c.RunTime)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}
