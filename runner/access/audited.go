package access

import (
	"cmp"
	"context"

	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/request"
	"carma/runner/rights"
)

// auditRecords is the number of records of an answer if none is asked for.
const auditRecords = 50

// Audit returns the records of the audit log that the caller may see. Root and the daemon's
// account see all records. Other callers see their own actions and the actions on their own
// tasks.
func (a *Authorizer) Audit(ctx context.Context, o api.AuditOptions) (api.Audit, error) {
	who, err := request.KnownCaller(ctx)
	if err != nil {
		return api.Audit{}, err
	}
	if err := a.reading.Acquire(ctx, 1); err != nil {
		return api.Audit{}, err
	}
	defer a.reading.Release(1)
	c, all := a.Subject(who), a.MayServer(rights.AllAudit, who)
	list, more, damaged, err := a.log.Read(cmp.Or(o.Limit, auditRecords), func(act *audit.Record) bool {
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
	return api.Audit{Records: list, More: more, Damaged: damaged, All: all, Now: a.now()}, err
}
