package root

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"carma/runner/api"
)

// auditOf returns the records of the canned audit log that match a query.
func auditOf(q url.Values) *api.Audit {
	at := func(ago time.Duration) time.Time { return noon.Add(-ago) }
	out := &api.Audit{Now: noon, All: q.Get("mine") == "", Records: []api.AuditRecord{
		{At: at(3 * time.Hour), Who: "oper", UID: 1003, Action: "exec", Task: 13, Owner: "root", Detail: "sh"},
		{At: at(2 * time.Hour), Who: "oper", UID: 1003, Action: "stop", Task: 14, Owner: "bob", OwnerUID: 1002, Allowed: true, Detail: "too long\x1b[31m"},
		{At: at(time.Hour), Who: "root", Action: "drain-gpus", Object: "GPU 0", Allowed: true},
	}}
	out.Records = slices.DeleteFunc(out.Records, func(r api.AuditRecord) bool {
		since, err := time.Parse(time.RFC3339Nano, q.Get("since"))
		return q.Get("task") != "" && q.Get("task") != strconv.FormatInt(r.Task, 10) || q.Get("user") != "" && q.Get("user") != r.Who && q.Get("user") != r.Owner || err == nil && r.At.Before(since)
	})
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n < len(out.Records) {
		out.Records, out.More = out.Records[len(out.Records)-n:], true
	}
	return out
}
