package sim

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/model"
)

// work is one task's need of a limited resource of a GPU, for example SM time.
type work struct {
	from   float64 // seconds until the work can begin
	amount float64 // in seconds of a whole A100
	rate   float64 // highest rate, alone on the fastest GPU; above 0
}

// earliest returns the first instant by which all works can be done, if no work begins
// before its first instant or exceeds its rate, and all together do not exceed capacity.
// In any order, at least left(y) remains to be done at an instant y: the rest if every
// task had run at its full rate from its first instant on. So no order ends before y +
// left(y)/capacity, for any y. The best fluid order also reaches the maximum over y (by
// max-flow and min-cut over the times between arrivals: among the cuts with a common
// deadline, the smallest ones split the time once). The slope of left changes only where
// a task arrives or would be done, so only these instants are tried.
func earliest(works []work, capacity float64) float64 {
	type bend struct{ at, rate float64 }
	bends := make([]bend, 0, 2*len(works))
	left := 0.0
	for _, w := range works {
		left += w.amount
		bends = append(bends, bend{w.from, w.rate}, bend{w.from + w.amount/w.rate, -w.rate})
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rate, b.rate)) })
	end, at, rate := 0.0, 0.0, 0.0
	for _, b := range bends {
		left -= max(0, rate) * (b.at - at)
		at = b.at
		rate += b.rate
		end = max(end, at+max(0, left)/capacity)
	}
	return end
}

// lowerBound returns a makespan that no schedule beats: the last end if every task ran
// alone on the fastest GPU from its arrival on, or, if that is later, the earliest
// instant by which all SM time, all DRAM time or, with time-slicing, all kernel time can
// be supplied. With factors on the speeds of pairs ([Truth]), tasks may get more than the
// capacity of these, so only the last end counts. Tasks that failed do not count.
func (e *engine) lowerBound() time.Duration {
	capacity, fastest, end := 0.0, 0.0, 0.0
	for _, d := range e.devices {
		capacity += d.Speed
		fastest = max(fastest, d.Speed)
	}
	var works [2][]work // by resource
	for i := range e.results {
		if e.results[i].Phase != model.Succeeded {
			continue
		}
		t := e.results[i].Task
		whole := t.SoloTime.Seconds()
		comes := seconds(origin.Add(t.At).Add(e.cfg.StartUp) - e.start)
		end = max(end, comes+whole/fastest)
		var shares [2]float64
		for _, l := range t.Loads {
			for k, share := range e.cfg.Sharing.takes(l) {
				shares[k] += share
			}
		}
		for k, share := range shares {
			if share > 0 {
				begin := TrainsFrom(whole)
				works[k] = append(works[k], work{comes + begin/fastest, share * (whole - begin), share * fastest})
			}
		}
	}
	for _, of := range works {
		end = max(end, earliest(of, capacity*e.most))
	}
	return time.Duration(end * float64(time.Second))
}

// takes returns the share that a task alone takes of the limited resources of a GPU: the
// time of its SMs and of its DRAM, or the time of kernels if tasks take turns. In the
// model, all tasks on a GPU together never exceed the capacity of each.
func (s Sharing) takes(l Load) [2]float64 {
	if s == TimeSlicing {
		return [2]float64{l.Busy(), 0}
	}
	return [2]float64{l.SMACT, l.DRAMA}
}
