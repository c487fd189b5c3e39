package predict

import (
	"slices"

	"carma/mapper/interference"
	"carma/mapper/model"
)

// mpsDomain identifies an MPS domain. Tasks on the same number of GPUs are assumed to be on the
// same GPUs.
type mpsDomain struct {
	user string
	gpus int
	// own is a task that no longer uses MPS because a server has failed under it, or 0.
	own model.TaskID
}

// MPSDomainOf returns the number of a task's MPS domain, from 1, or 0 if domains do not
// matter here or the task is not known.
func (pr *Predictor) MPSDomainOf(t *model.Task) int32 {
	if !pr.byUser || t == nil {
		return 0
	}
	c := mpsDomain{t.User, t.GPUs, 0}
	if slices.ContainsFunc(t.Attempts, func(a model.Attempt) bool { return a.Class == model.ExitMPSFault }) {
		c.own = t.ID
	}
	n, ok := pr.derived.mpsDomains[c]
	if !ok {
		if pr.derived.mpsDomains == nil {
			pr.derived.mpsDomains = map[mpsDomain]int32{}
		}
		n = int32(len(pr.derived.mpsDomains) + 1)
		pr.derived.mpsDomains[c] = n
	}
	return n
}

// FindMPSDomains updates whether MPS domains matter on any GPU, and returns whether that has
// changed. If it has changed, all cached results are invalid.
func (pr *Predictor) FindMPSDomains() (changed bool) {
	byUser := slices.ContainsFunc(pr.GPUList(), func(g *model.GPU) bool { return g.Sharing == model.SharingUsers })
	changed = byUser != pr.byUser
	pr.byUser = byUser
	return changed
}

// severalMPSDomains reports whether tasks on a GPU take turns because they are in
// different MPS domains.
func severalMPSDomains(of []Demand) bool {
	return slices.ContainsFunc(of, func(d Demand) bool { return d.circle != of[0].circle })
}

// byMPSDomain converts the speeds of tasks in one MPS domain into the speeds in several
// domains. During the time slices of its domain a task has its speed under MPS. If the domains
// together need less than the whole time, nothing changes.
func byMPSDomain(of []Demand, speeds []float64) {
	var numberSpace [16]int32
	var busySpace, partSpace, withinSpace [16]float64
	numbers, busy, part, within := numberSpace[:0], busySpace[:0], partSpace[:0], withinSpace[:0]
	for _, d := range of {
		if slices.Contains(numbers, d.circle) {
			continue
		}
		numbers, part = append(numbers, d.circle), append(part, 1)
		within = speedsWithin(within[:0], of, d.circle)
		gap, k := 1.0, 0
		for _, o := range of {
			if o.circle == d.circle {
				gap *= (1 - o.busy) * within[k]
				k++
			}
		}
		busy = append(busy, 1-gap)
	}
	if interference.TakeTurns(busy, part) {
		for c, number := range numbers {
			within = speedsWithin(within[:0], of, number)
			for i, o := range of {
				if o.circle == number {
					speeds[i] = within[0] * part[c]
					within = within[1:]
				}
			}
		}
	}
}

// speedsWithin appends the speeds of the tasks of a domain without the other domains.
func speedsWithin(into []float64, of []Demand, number int32) []float64 {
	var space [16]interference.Task
	members := space[:0]
	for _, d := range of {
		if d.circle == number {
			members = append(members, d.task)
		}
	}
	return interference.Fitted.SpeedsOf(into, members)
}
