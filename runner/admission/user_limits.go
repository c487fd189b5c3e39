package admission

import (
	"carma/internal/units"
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
func (a *Controller) room(in *submissionBatch) error {
	who, limit := in.who, a.cfg.Settings().PerUser
	if a.cfg.Authz.MayServer(rights.Unlimited, who) {
		return nil
	}
	have := a.cfg.Records.Usage(who.UID)
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
