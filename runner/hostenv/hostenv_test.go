package hostenv

import (
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/bare"
	"carma/containers/containerstest"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/usermounts"
)

// TestMayRun checks that the setting decides who may run tasks without an image.
func TestMayRun(t *testing.T) {
	tasks := ""
	e := New(Config{
		Driver: containerstest.NewFake(), MountDir: t.TempDir(), Opener: usermounts.New(usermounts.Config{}),
		Authz:    access.New(access.Config{Account: -1, Settings: func() access.Settings { return access.Settings{AdminGroup: "admins"} }}),
		Settings: func() Settings { return Settings{Tasks: tasks} },
	})
	ann := request.Caller{UID: 20001, Name: "ann"}
	member, admin := ann, ann
	member.Groups, admin.Groups = []string{"trusted"}, []string{"admins"}
	for may, want := range map[string][3]bool{ // ann, in group trusted, an admin
		"all":     {true, true, true},
		"trusted": {false, true, true},
		"admins":  {false, false, true},
		"none":    {},
		"":        {},
	} {
		tasks = may
		for i, who := range []request.Caller{ann, member, admin} {
			err := e.MayRun(who)
			if err != nil && !strings.Contains(err.Error(), "host-tasks") {
				t.Skip(err) // not as root
			}
			if (err == nil) != want[i] {
				t.Errorf("host-tasks %q, %v: %v", may, who.Groups, err)
			}
		}
	}
}

// TestFurnish checks that a task without an image gets the user's home only if it sees it, and
// carma's init in place of the engine's.
func TestFurnish(t *testing.T) {
	e := New(Config{Init: "/opt/carma-init", Users: func(uid, gid int) request.Caller {
		return request.Caller{UID: uid, GID: gid, Name: "ann", Home: "/home/ann", GIDs: []int{gid, 7}}
	}})
	rec := &record.Record{UID: 1, GID: 2, Submit: api.Submit{Host: true, Command: []string{"ls"}}}
	for target, want := range map[string]string{"/home": "/home/ann", "/srv": containers.ScratchDir} {
		spec := containers.Spec{}
		spec.Init = true
		e.Furnish(&spec, rec, []containers.Mount{{Source: target, Target: target}})
		if spec.Image != bare.Image || spec.WorkDir != want || len(spec.Groups) != 1 || spec.Groups[0] != "7" {
			t.Errorf("with %s: %+v", target, spec)
		}
		if spec.Init || spec.Command[0] != containers.InitTarget || spec.Mounts[1].Source != "/opt/carma-init" {
			t.Errorf("init: %+v", spec)
		}
	}
}
