package runner

import (
	"slices"
	"strings"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/request"
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

// room refuses a submission that would bring its user over a limit. Only the
// loop calls it.
func (r *Runner) room(in *submissionBatch) error {
	who, limit := in.who, r.live().PerUser
	if r.mayServer(rights.Unlimited, who) {
		return nil
	}
	have := r.records.Usage(who.UID)
	for _, c := range in.tasks {
		have.Add(&c.rec.Submit, 1)
	}
	switch {
	case limit.Tasks > 0 && have.Tasks > limit.Tasks:
		return request.Errorf(429, "you would have %d unfinished tasks, and this server takes at most %d of one user (user-tasks); wait until some have ended, or `carma stop` some", have.Tasks, limit.Tasks)
	case limit.Bytes > 0 && have.Bytes > int64(limit.Bytes):
		return request.Errorf(429, "your unfinished tasks were submitted with %s, and this server keeps at most %s of one user (user-bytes); wait until some have ended, or put long commands and environments into files", units.Bytes(have.Bytes), limit.Bytes)
	case limit.High > 0 && have.High > limit.High:
		return request.Errorf(429, "you would have %d unfinished tasks of priority high, and this server takes at most %d of one user (user-high); submit the others with --priority normal", have.High, limit.High)
	}
	return nil
}

// checkPriority refuses priority high to users who may not use it.
func (r *Runner) checkPriority(who request.Caller, s api.Submit) error {
	if _, ok := priorities[s.Priority]; !ok {
		return request.Errorf(422, "--priority %q: choose low, normal or high", s.Priority)
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
		return request.Errorf(403, "--priority high is for admins here (%s); write --priority normal", admins)
	}
	return request.Errorf(403, "--priority high is for %s and admins here (%s); write --priority normal", strings.Join(names, ", "), admins)
}

// account returns the group to which a task is charged. It is the requested group, which
// must have the submitter as a member, or else the submitter's primary group.
func (r *Runner) account(who request.Caller, asked string) (string, error) {
	switch {
	case asked == "":
		return who.Group, nil // for a user of a cluster, prepare uses the namespace
	case slices.Contains(who.Groups, asked) || asked == who.Group || r.mayServer(rights.AnyAccount, who):
		return asked, nil
	case len(who.Groups) == 0:
		return "", request.Errorf(403, "--account %s: you are in no group that is known here", asked)
	}
	return "", request.Errorf(403, "--account %s: you are not in that group; you are in %s", asked, strings.Join(who.Groups, ", "))
}
