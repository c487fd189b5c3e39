package runner

import (
	"slices"
	"strings"

	"carma/internal/units"

	"carma/runner/api"
	"carma/runner/rights"
)

// PerUser bounds one user's use of the daemon itself. 0 means no limit. Root and admins
// have no limits.
type PerUser struct {
	Tasks       int         // unfinished tasks
	Bytes       units.Bytes // size of the requests of unfinished tasks
	High        int         // unfinished tasks with priority high
	Connections int         // open connections
	// Suites with helpers, all their helpers, and the volumes of suites that are up.
	Suites, Helpers, Volumes int
	// MayHigh names the users who may use priority high: all (or empty), admins, or user and
	// group names separated by commas. Admins always may.
	MayHigh string
}

// usage is the sum over a user's unfinished tasks.
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

// sizeOf returns the approximate memory of a request in bytes.
func sizeOf(s *api.Submit) int64 {
	size := 512 + len(s.Image) + len(s.Conda) + len(s.Venv) + len(s.WorkDir) + len(s.Name)
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

// room refuses a submission that would bring its user over a limit. Only the
// loop calls it.
func (r *Runner) room(in *submissionBatch) error {
	who, limit := in.who, r.live().PerUser
	if r.mayServer(rights.Unlimited, who) {
		return nil
	}
	have := r.records.usage(who.UID)
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

// checkPriority refuses priority high to users who may not use it.
func (r *Runner) checkPriority(who Caller, s api.Submit) error {
	if _, ok := priorities[s.Priority]; !ok {
		return refusef(422, "--priority %q: choose low, normal or high", s.Priority)
	}
	if s.Priority != "high" || r.mayServer(rights.HighPriority, who) {
		return nil
	}
	may := r.live().PerUser.MayHigh
	if may == "" || may == "all" {
		return nil
	}
	names := strings.FieldsFunc(may, func(c rune) bool { return c == ',' || c == ' ' })
	if slices.ContainsFunc(names, func(name string) bool { return name == who.Name || slices.Contains(who.Groups, name) }) {
		return nil
	}
	admins := "root"
	if group := r.live().AdminGroup; group != "" {
		admins = "root and group " + group
	}
	if may == "admins" {
		return refusef(403, "--priority high is for admins here (%s); write --priority normal", admins)
	}
	return refusef(403, "--priority high is for %s and admins here (%s); write --priority normal", strings.Join(names, ", "), admins)
}

// account returns the group to which a task is charged. It is the requested group, which
// must have the submitter as a member, or else the submitter's primary group.
func (r *Runner) account(who Caller, asked string) (string, error) {
	switch {
	case asked == "":
		return who.Group, nil // for a user of a cluster, prepare uses the namespace
	case slices.Contains(who.Groups, asked) || asked == who.Group || r.mayServer(rights.AnyAccount, who):
		return asked, nil
	case len(who.Groups) == 0:
		return "", refusef(403, "--account %s: you are in no group that is known here", asked)
	}
	return "", refusef(403, "--account %s: you are not in that group; you are in %s", asked, strings.Join(who.Groups, ", "))
}
