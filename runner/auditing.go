package runner

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
)

// auditRecords is the number of records of an answer if none is asked for.
const auditRecords = 50

// addAudit adds the request for the audit log.
func (r *Runner) addAudit(a huma.API) {
	huma.Register(a, operation("audit", http.MethodGet, "/v1/audit", "Acts of administrators; root reads all, others what is about them"),
		func(ctx context.Context, in *struct {
			User  string    `query:"user" doc:"who acted, or whose task it was"`
			Mine  bool      `query:"mine" doc:"only the caller's own acts"`
			Task  int64     `query:"task" minimum:"0" doc:"only acts on this task"`
			Since time.Time `query:"since"`
			Until time.Time `query:"until"`
			Limit int       `query:"limit" minimum:"0" maximum:"100000" doc:"at most so many, the newest; 0: 50"`
		}) (*output[api.Audit], error) {
			return answer(r.Audit(ctx, api.AuditOptions{User: in.User, Mine: in.Mine, Task: in.Task, Since: in.Since, Until: in.Until, Limit: in.Limit}))
		})
}

// Audit returns the records of the audit log that the caller may see: everybody their own
// acts and the acts on what is theirs, root and the daemon's account all.
func (r *Runner) Audit(ctx context.Context, o api.AuditOptions) (api.Audit, error) {
	who, ok := callerFrom(ctx)
	if !ok {
		return api.Audit{}, refusef(403, callerUnknown)
	}
	if err := r.auditing.enter(ctx); err != nil {
		return api.Audit{}, err
	}
	defer r.auditing.leave()
	c, all := r.subject(who), r.mayServer(rights.AllAudit, who)
	list, more, damaged, err := r.audit.Read(cmp.Or(o.Limit, auditRecords), func(act *audit.Record) bool {
		own := rights.Owns(c, rights.Owner{UID: act.UID, Name: act.Who})
		theirs := act.Owner != "" && rights.Owns(c, rights.Owner{UID: act.OwnerUID, Name: act.Owner})
		switch {
		case !all && !own && !theirs, o.Mine && !own, o.Task != 0 && act.Task != o.Task, o.User != "" && act.Who != o.User && act.Owner != o.User:
			return false
		}
		return !act.At.Before(o.Since) && (o.Until.IsZero() || act.At.Before(o.Until))
	})
	if list == nil {
		list = []audit.Record{}
	}
	return api.Audit{Records: list, More: more, Damaged: damaged, All: all, Now: r.Clock.Time()}, err
}
