package mapper

import (
	"slices"

	"carma/mapper/interference"
)

// Under SharingUsers a GPU has an MPS server for each circle: the tasks of a user
// that have the same GPUs. The kernels of a circle run at the same time, and the
// circles take turns.

// mpsDomain names a circle. Tasks on as many GPUs are assumed to have the same ones.
type mpsDomain struct {
	user string
	gpus int
	// own is a task that is no client of MPS any more, because a server has
	// failed under it; 0: a client.
	own TaskID
}

// mpsDomainOf numbers the circle of a task, from 1; 0: the circles do not matter
// here, or nobody knows.
func (s *State) mpsDomainOf(t *Task) int32 {
	if !s.byUser || t == nil {
		return 0
	}
	c := mpsDomain{t.User, t.GPUs, 0}
	if slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Class == ExitMPSFault }) {
		c.own = t.ID
	}
	n, ok := s.cache.circles[c]
	if !ok {
		if s.cache.circles == nil {
			s.cache.circles = map[mpsDomain]int32{}
		}
		n = int32(len(s.cache.circles) + 1)
		s.cache.circles[c] = n
	}
	return n
}

// findMPSDomains notes whether circles matter on any GPU.
func (s *State) findMPSDomains() {
	byUser := slices.ContainsFunc(s.gpus, func(g *GPU) bool { return g.Sharing == SharingUsers })
	if byUser != s.byUser {
		s.byUser = byUser
		s.dropCache()
	}
}

// severalMPSDomains reports whether tasks on a GPU take turns because of their
// circles.
func severalMPSDomains(of []loadDemand) bool {
	return slices.ContainsFunc(of, func(d loadDemand) bool { return d.circle != of[0].circle })
}

// byMPSDomain turns the speeds of tasks that all share by MPS into those of several
// circles. Within a circle tasks go as under MPS, for the time of its turns. If
// there is time for all, nothing changes.
func byMPSDomain(of []loadDemand, speeds []float64) {
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

// speedsWithin appends the speeds of the tasks of a circle if no others are there.
func speedsWithin(into []float64, of []loadDemand, number int32) []float64 {
	var space [16]interference.Task
	members := space[:0]
	for _, d := range of {
		if d.circle == number {
			members = append(members, d.task)
		}
	}
	return interference.Fitted.SpeedsOf(into, members)
}
