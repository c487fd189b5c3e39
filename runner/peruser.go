package runner

import (
	"slices"

	"carma/mapper/units"

	"carma/runner/api"
)

// PerUser bounds what one user may have of the daemon itself. 0 is no limit;
// root and admins have none.
type PerUser struct {
	Tasks       int         // unfinished tasks
	Bytes       units.Bytes // what these were submitted with
	High        int         // of them with priority high
	Connections int         // open ones
	// MayHigh is who may use priority high: all, admins, or a group's name.
	MayHigh string
}

// usage is what a user's unfinished tasks come to.
type usage struct {
	tasks, high int
	bytes       int64
}

func (u *usage) add(s *api.Submit, n int) {
	u.tasks += n
	u.bytes += int64(n) * sizeOf(s)
	if s.Priority == "high" {
		u.high += n
	}
}

// sizeOf is about how much memory a request takes.
func sizeOf(s *api.Submit) int64 {
	size := 512 + len(s.Image) + len(s.WorkDir) + len(s.Name)
	for _, list := range [][]string{s.Command, s.Entrypoint, s.Env} {
		for _, t := range list {
			size += len(t) + 16
		}
	}
	for k, v := range s.Labels {
		size += len(k) + len(v) + 32
	}
	for _, m := range s.Mounts {
		size += len(m.Source) + len(m.Target) + 32
	}
	return int64(size + 64*len(s.After))
}

// room refuses a submission that would give one user more than their part; the
// loop only.
func (r *Runner) room(in *intake) error {
	who, limit := in.who, r.live().PerUser
	if r.admin(who) {
		return nil
	}
	have := r.book.usage(who.UID)
	for _, c := range in.tasks {
		have.add(&c.rec.Submit, 1)
	}
	switch {
	case limit.Tasks > 0 && have.tasks > limit.Tasks:
		return refusef(429, "you would have %d unfinished tasks, and this server takes at most %d of one user (user-tasks); wait until some have ended, or `carma stop` some", have.tasks, limit.Tasks)
	case limit.Bytes > 0 && have.bytes > int64(limit.Bytes):
		return refusef(429, "your unfinished tasks were submitted with %s, and this server keeps at most %s of one user (user-bytes); wait until some have ended, or put long commands and environments into files", units.Bytes(have.bytes), limit.Bytes)
	case limit.High > 0 && have.high > limit.High:
		return refusef(429, "you would have %d unfinished tasks of priority high, and this server takes at most %d of one user (user-high); submit the others with --priority normal", have.high, limit.High)
	}
	return nil
}

// checkPriority refuses priority high to those who may not use it.
func (r *Runner) checkPriority(who Caller, s api.Submit) error {
	if _, ok := priorities[s.Priority]; !ok {
		return refusef(422, "--priority %q: choose low, normal or high", s.Priority)
	}
	if s.Priority != "high" || r.admin(who) {
		return nil
	}
	switch may := r.live().PerUser.MayHigh; {
	case may == "" || may == "all" || slices.Contains(who.Groups, may):
		return nil
	case may == "admins":
		return refusef(403, "--priority high is for administrators here; write --priority normal")
	default:
		return refusef(403, "--priority high is for group %s here; write --priority normal", may)
	}
}
