package mapper

import (
	"cmp"
	"slices"
	"time"
)

// startCritical starts critical tasks before their turn. A task is critical if its
// expected run time is at least the time in which the GPUs could do all work
// there is. Shortest-first alone would leave long tasks for the end, when most
// GPUs are idle. It looks only at the highest priority that waits.
func (s *State) startCritical(p *pass) {
	lanes := s.queue.main()
	if s.opt.Order != OrderSJF || lanesLen(lanes) > criticalQueue*len(s.gpus) {
		return // no task is longer than so many together
	}
	first := slices.IndexFunc(lanes, func(l lane) bool { return l.len() > 0 })
	if first < 0 {
		return
	}
	waiting := lanes[first].waiting()
	var longest time.Duration
	for _, t := range waiting {
		run, _ := s.runTime(t)
		longest = max(longest, run)
	}
	drain := s.drain(longest.Seconds())
	var critical []*Task
	for _, t := range waiting {
		// A task that has made way for others must not go before them.
		if run, _ := s.runTime(t); run.Seconds() >= drain && t.Behind == 0 && t.NotBefore <= s.now && s.onTrial(t) && s.canFit(t) && s.overQuota(t).Code == "" {
			critical = append(critical, t)
		}
	}
	slices.SortStableFunc(critical, func(a, b *Task) int {
		x, _ := s.runTime(a)
		y, _ := s.runTime(b)
		return cmp.Or(cmp.Compare(y.Seconds()*float64(b.GPUs), x.Seconds()*float64(a.GPUs)), cmp.Compare(a.ID, b.ID))
	})
	for _, t := range critical {
		if s.shut() {
			return
		}
		if s.overQuota(t).Code != "" {
			continue // by now: one before it was the same user's
		}
		if gpus := s.place(p, t); gpus != nil {
			s.queue.remove(t)
			s.launch(t, gpus)
			p.fit = s.survey(p)
		} else if t.GPUs > 1 && p.favoured == nil {
			s.keepReady(p, t)
		}
	}
}

// criticalQueue is the number of waiting tasks per GPU above which no critical
// task is looked for: none runs as long as so many others together.
const criticalQueue = 16

// drain is the time, in seconds, in which the GPUs could do the SM work of all
// running and waiting tasks if they were always busy. It stops counting above
// limit, so a larger result only says "more than limit".
func (s *State) drain(limit float64) float64 {
	work, most := 0.0, limit*float64(len(s.gpus))
	for i := range s.queue.main() {
		for _, t := range s.queue.main()[i].waiting() {
			run, _ := s.runTime(t)
			for i := range t.GPUs {
				work += run.Seconds() * t.load(i).SMACT
			}
		}
	}
	for _, g := range s.gpus {
		if work > most {
			break
		}
		for _, p := range s.memo(g).parts {
			work += p.left * p.sm
		}
	}
	return work / float64(len(s.gpus))
}
