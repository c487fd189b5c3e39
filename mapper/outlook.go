package mapper

import (
	"math"

	"carma/mapper/units"

	"carma/mapper/interference"
)

// part is one task in an outlook on a GPU. Times are seconds.
type part struct {
	task   TaskID // 0: the newcomer, or not ours
	sm     float64
	demand demand
	// done and left are what it has done and is expected to have to do, as the
	// time that takes alone; elapsed is since it started.
	done, left, elapsed float64
	// elsewhere is its speed on the slowest of its other GPUs.
	elsewhere float64
	basis     basis

	// What the outlook says: when it ends, from now, and how many times as
	// long as alone it will have taken if all stays as it is for a while.
	finish, persisting float64
}

// slowdown is how many times as long as alone a task will have taken.
func (p *part) slowdown() float64 { return (p.elapsed + p.finish) / max(1, p.done+p.left) }

// worst is the slowdown that is held against the cap: of a task whose run time
// is known the one at its end, of any other the one it comes to if those that
// are there now stay. It may end at any time, so no better times count.
func (p *part) worst() float64 {
	if p.basis == known {
		return p.slowdown()
	}
	return max(p.slowdown(), p.persisting)
}

// aWhile is for how many seconds an outlook takes it that neighbours stay.
const aWhile = 3600

// outlook predicts when each of the tasks on a GPU ends if no other comes.
func outlook(parts []part) {
	var activeSpace [16]int
	var leftSpace, speedSpace [16]float64
	var demandSpace [16]demand
	active, left := activeSpace[:0], leftSpace[:0]
	for i := range parts {
		left = append(left, parts[i].left)
		active = append(active, i)
	}
	for now := 0.0; len(active) > 0; {
		demands := demandSpace[:0]
		for _, i := range active {
			demands = append(demands, parts[i].demand)
		}
		speeds := speeds(speedSpace[:0], demands)
		next := math.Inf(1)
		for k, i := range active {
			p := &parts[i]
			speeds[k] = min(speeds[k], p.elsewhere)
			next = min(next, left[i]/speeds[k])
			if now == 0 {
				p.persisting = (p.elapsed + aWhile) / max(1, p.done+aWhile*speeds[k])
			}
		}
		now += next
		rest := active[:0]
		for k, i := range active {
			if left[i] -= next * speeds[k]; left[i] <= 1e-6*parts[i].left {
				parts[i].finish = now
			} else {
				rest = append(rest, i)
			}
		}
		active = rest
	}
}

// parts appends the tasks on a GPU as an outlook from an instant takes them. What
// the monitor saw beyond what they are expected to do is somebody else's, and
// stays.
func (s *State) parts(parts []part, g *GPU, at units.Instant) []part {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := s.tasks[r.Task]
		p := part{task: t.ID, sm: r.Load.SMACT, demand: demandOf(r.Load), elsewhere: 1, done: t.Done}
		if a := t.Current(); a.Started > 0 && at > a.Started {
			p.elapsed = at.Sub(a.Started).Seconds()
			p.done = max(0, p.done+at.Sub(max(t.PacedAt, a.Started)).Seconds()*t.Speed)
		}
		p.left, p.basis = s.left(t, p.done)
		for _, grant := range t.Current().Grants {
			if grant.GPU != g.ID {
				p.elsewhere = min(p.elsewhere, s.byID[grant.GPU].resident(t.ID).Speed)
			}
		}
		parts = append(parts, p)
	}
	if more := s.extra(g); more > 0 {
		load := interference.Load{SMACT: more, SMOCC: g.SMOCC * more / g.SMACT, DRAMA: g.DRAMA * more / g.SMACT}
		parts = append(parts, part{sm: more, demand: demandOf(load), elsewhere: 1, left: aWhile, basis: guessed})
	}
	return parts
}

// extra is the SM activity of a GPU beyond what its tasks are expected to do;
// 0 while that is little or cannot be told.
func (s *State) extra(g *GPU) float64 {
	if g.SMACT < unexpected || !s.settled(g) {
		return 0
	}
	sm := 0.0
	for i := range g.Residents {
		sm += g.Residents[i].Load.SMACT * g.Residents[i].Speed
	}
	if more := g.SMACT - min(sm, 1); more > unexpected {
		return more
	}
	return 0
}

// unexpected is the SM activity beyond the expected from which it counts.
const unexpected = 0.15

// left is how many seconds alone a task is expected to have to go. One that
// has run for longer than expected goes on for a while.
func (s *State) left(t *Task, done float64) (float64, basis) {
	whole, basis := s.runTime(t)
	overrun := overrunGuessed
	if basis == known {
		overrun = overrunKnown
	}
	return max(whole.Seconds()-done, overrun*max(done, whole.Seconds()/5), 1), basis
}

// How much longer a task goes on that has come to its expected end, as a share
// of what it has done.
const (
	overrunKnown   = 0.05
	overrunGuessed = 0.5
)

// pessimistic appends the same tasks, but those whose run time is not known
// take longer than expected.
func pessimistic(late, parts []part) []part {
	late = append(late, parts...)
	for i := range late {
		late[i].left *= lateness[late[i].basis]
	}
	return late
}

// lateness is by how much a task may take longer than expected: of the shipped
// workloads two in three are within a factor of two of their model's median;
// of one about which nothing is known no end is counted on.
var lateness = [...]float64{known: 1, typical: 2, guessed: 100}
