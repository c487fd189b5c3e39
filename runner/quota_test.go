package runner

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/request"
)

// TestAccounts: a task is charged to its submitter's primary group, or to another of the
// submitter's groups if requested, and users and groups have quotas.
func TestAccounts(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.opt.Mapper.Quotas = []model.Quota{{Name: ann.Name, GPUs: 4}, {Name: "lab", Account: true, Tasks: 1}}
		g.opt.PerUser.MayHigh = "admins"
	})
	who := ann
	who.Group, who.Groups = "lab", []string{"lab", "staff"}
	g.script("train", untilStopped)
	submit := api.Submit{Image: "train", Mem: int64(units.GiB)}
	if first := g.runAs(who, submit); g.phase(first).Submit.Account != "lab" {
		t.Errorf("account %q", g.phase(first).Submit.Account)
	}
	g.runAs(who, submit) // waits for the group's quota
	submit.Account = "staff"
	g.runAs(who, submit)
	submit.Account = "ops"
	g.refusedAs(who, submit, 403, "--account ops: you are not in that group; you are in lab, staff")
	submit.Account, submit.Priority = "", "high"
	g.refusedAs(who, submit, 403, "for admins here")
	got := map[string]api.Account{}
	all, err := g.control.Quotas(g.ctx(), request.Caller{Name: "eve"}, []string{"root", "nobody-of-that-name", "@root"})
	for _, a := range all {
		got[a.User+"@"+a.Group] = a
	}
	for _, name := range []string{"eve@", "root@", "@root"} { // the caller, and the named users and groups
		if _, is := got[name]; !is {
			t.Errorf("%s is not listed: %+v", name, got)
		}
	}
	if _, is := got["nobody-of-that-name@"]; is || all[len(all)-1].Group == "" || all[0].User == "" {
		t.Errorf("%+v", all)
	}
	if u, l, s := got[ann.Name+"@"], got["@lab"], got["@staff"]; err != nil || u.Tasks != 2 || u.Waiting != 1 || u.QuotaGPUs != 4 || l.Tasks != 1 || l.QuotaTasks != 1 || s.Tasks != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
