package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/containers"
	"carma/containers/bare"
	"carma/containers/containerstest"
	"carma/estimator/probe"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/containerfiles"
	"carma/runner/record"
	"carma/runner/request"
)

// hostRig returns a daemon that runs tasks without an image, with a home of ann that contains a
// conda environment and a virtual environment, and a secret of bob beside it. The specification
// of a task's container is sent to made.
func hostRig(t *testing.T, change ...func(*rig)) (g *rig, home string, made chan containers.Spec) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can show folders to others")
	}
	stage, err := os.MkdirTemp("/run", "carma-bare-test")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		own, _ := filepath.Glob(filepath.Join(stage, "*"))
		for _, d := range append(own, stage) {
			if err := os.Remove(d); err != nil { // fails if a mount is left
				t.Error(err)
			}
		}
	})
	root, err := os.MkdirTemp("/tmp", "carma-bare")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	home = filepath.Join(root, "ann")
	for _, dir := range []string{root, home, home + "/c/envs/exp/conda-meta", home + "/c/envs/exp/bin", home + "/v/bin", home + "/leaky/bin", home + "/empty", root + "/bob", root + "/bob/v/bin"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for at, to := range map[string]string{"c/envs/exp/bin/python": "/usr/bin/env", "v/bin/python": "/usr/bin/env", "leaky/bin/python": "/srv", "bobs": root + "/bob/v", "out": "/srv", "in": home + "/v"} {
		if err := os.Symlink(to, filepath.Join(home, at)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{os.Chmod(root, 0o755), os.Chown(home, ann.UID, ann.GID), os.Chmod(root+"/bob", 0o700), os.Chown(root+"/bob", bob.UID, bob.GID)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	g = newRig(t, append([]func(*rig){func(g *rig) {
		g.opt.MountDir, g.opt.AllowedMounts = stage, []string{"~", "/nowhere"}
		g.opt.HostTasks, g.opt.HostFolders, g.opt.AdminGroup = "all", []string{"/usr", "/etc", "/nowhere"}, "lab"
	}}, change...)...)
	g.Runner.users = func(uid, gid int) request.Caller {
		return map[int]request.Caller{ann.UID: {UID: uid, GID: gid, Name: "ann", Home: home, GIDs: []int{gid, 30001}}}[uid]
	}
	made = make(chan containers.Spec, 10)
	g.engine.AddImage(bare.Image, containerstest.Image{Remote: true, Run: func(_ context.Context, p *containerstest.Process) int { made <- p.Spec; return 0 }})
	return g, home, made
}

// annAt is ann with a home.
func annAt(home string) request.Caller { who := ann; who.Home = home; return who }

// TestBareTask: the container of a task without an image has the machine's
// folders, read-only, and the submitter's home; the environment's variables; and
// the image that the daemon makes, without a pull. It runs as its submitter.
func TestBareTask(t *testing.T) {
	g, home, made := hostRig(t)
	s := api.Submit{Conda: home + "/c/envs/exp", ContainerOptions: api.ContainerOptions{WorkDir: home + "/c"}, Command: []string{"python", "train.py"}, Mem: int64(units.GiB), Env: []string{"A=1"}}
	id := g.runAs(annAt(home), s)
	if task := g.finished(id); task.Phase != "succeeded" || task.Image != "conda:"+s.Conda || task.Name != "exp-"+id {
		t.Errorf("%+v", task)
	}
	spec := <-made
	program := bare.Program{Conda: s.Conda, Command: s.Command}
	if !slices.Equal(spec.Groups, []string{"30001"}) {
		t.Errorf("its groups are %v", spec.Groups)
	}
	if spec.User != "20001:20001" || !spec.NoNewPrivileges || spec.WorkDir != home+"/c" || !slices.Equal(spec.Command, program.Words()) {
		t.Errorf("%+v", spec)
	}
	for _, kv := range []string{"A=1", "CONDA_PREFIX=" + s.Conda, "HOME=" + home, "USER=ann"} {
		if !slices.Contains(spec.Env, kv) {
			t.Errorf("no %s in %q", kv, spec.Env)
		}
	}
	var shown []string
	for _, m := range spec.Mounts {
		if !strings.HasPrefix(m.Source, g.opt.MountDir+"/") {
			t.Errorf("%s is shown by its path %s", m.Target, m.Source)
		}
		shown = append(shown, fmt.Sprint(m.Target, " ", m.ReadOnly))
	}
	slices.Sort(shown)
	if want := []string{"/etc true", home + " false", "/usr true"}; !slices.Equal(shown, want) {
		t.Errorf("it sees %q, want %q", shown, want)
	}
	if n, pulled := g.engine.Calls(containerstest.OpImport), g.engine.Calls(containerstest.OpPull); n != 1 || pulled != 0 {
		t.Errorf("the image was made %d times and pulled %d times", n, pulled)
	}
	g.finished(g.runAs(annAt(home), s)) // the image is there
	<-made
	g.engine.AddImage(bare.Image, containerstest.Image{Remote: true, Run: printing(0)}) // the engine has lost it
	if task := g.finished(g.runAs(annAt(home), s)); task.Phase != "succeeded" || g.engine.Calls(containerstest.OpImport) != 2 {
		t.Errorf("after the engine has lost the image: %s, %s", task.Phase, task.Reason)
	}
}

// TestBareInit: --init without an image runs carma-init, mounted at its own path, before the
// shell that activates an environment. If carma-init is missing, the error says so.
func TestBareInit(t *testing.T) {
	g, home, made := hostRig(t, func(g *rig) { g.opt.Init = "/usr/lib/carma/carma-init" })
	for _, s := range []api.Submit{{Host: true}, {Conda: home + "/c/envs/exp"}, {Venv: home + "/v"}} {
		s.Command, s.Mem, s.Init, s.WorkDir = []string{"python"}, 1<<30, true, home
		g.finished(g.runAs(annAt(home), s))
		spec, program := <-made, bare.Program{Conda: s.Conda, Venv: s.Venv, Command: s.Command}
		if want := append([]string{"/.carma/init", "reap"}, program.Words()...); spec.Init || !slices.Equal(spec.Command, want) {
			t.Errorf("%+v: the engine's init: %v; it runs %q, want %q", s, spec.Init, spec.Command, want)
		}
		if !slices.Contains(spec.Mounts, containers.Mount{Source: "/usr/lib/carma/carma-init", Target: "/.carma/init", ReadOnly: true}) {
			t.Errorf("its mounts are %+v", spec.Mounts)
		}
	}
	g, home, _ = hostRig(t)
	_, err := g.admission.Submit(g.ctx(), annAt(home), api.Submit{Host: true, ContainerOptions: api.ContainerOptions{Init: true, WorkDir: home}, Command: []string{"true"}, Mem: 1 << 30})
	g.refusedTo(err, 422, "--init: carma-init is not there")
}

// TestBareVenv: a virtual environment and the machine's own programs. A home that the task does
// not see is not set as its home. A user's own mount takes precedence over a folder of the
// machine.
func TestBareVenv(t *testing.T) {
	g, home, made := hostRig(t)
	g.finished(g.runAs(annAt(home), api.Submit{Venv: home + "/v", Command: []string{"python"}, Mem: 1 << 30}))
	if spec := <-made; !slices.Contains(spec.Env, "VIRTUAL_ENV="+home+"/v") || !slices.Equal(spec.Command, []string{"python"}) || spec.WorkDir != home {
		t.Errorf("%+v", spec)
	}
	g.live().AllowedMounts = []string{home + "/v"}
	if err := os.Chown(home+"/v", ann.UID, ann.GID); err != nil { // the engine creates its /etc/hosts there
		t.Fatal(err)
	}
	g.finished(g.runAs(annAt(home), api.Submit{Host: true, Command: []string{"ls"}, Mem: 1 << 30, Mounts: []api.Mount{{Source: home + "/v", Target: "/etc"}}}))
	spec := <-made
	if !slices.Contains(spec.Env, "HOME=/tmp") || spec.WorkDir != "/tmp" {
		t.Errorf("without its home: %q in %s", spec.Env, spec.WorkDir)
	}
	var etc []containers.Mount
	for _, m := range spec.Mounts {
		if m.Target == "/etc" {
			etc = append(etc, m)
		}
	}
	if len(etc) != 1 || etc[0].ReadOnly {
		t.Errorf("/etc is %+v", etc)
	}
}

// TestBareRefused: options that a task without an image cannot have are refused at submission
// with a message of one line and a fix.
func TestBareRefused(t *testing.T) {
	g, home, _ := hostRig(t)
	who := annAt(home)
	root := filepath.Dir(home)
	ls := []string{"ls"}
	for words, s := range map[string]api.Submit{
		"working folder /srv: a task without an image does not see it; it sees the machine's programs and " + home + "; start": {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: "/srv"}},
		"working folder " + home + "/out: a task without":                                                                      {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: home + "/out"}},
		"working folder " + home + "/none: there is no such":                                                                   {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: home + "/none"}},
		"working folder " + root + "/bob/v: you cannot reach it yourself":                                                      {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: root + "/bob/v"}},
		"working folder " + home + "/bobs: you cannot reach it yourself":                                                       {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: home + "/bobs"}},
		"working folder /proc/self/root: ":                                                                                     {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: "/proc/self/root"}},
		"working folder " + home + "/../../../srv: a task":                                                                     {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: home + "/../../../srv"}},
		"--conda ../../x: not the full path":                                                                                   {Conda: "../../x", Command: ls},
		"--conda /srv: a task without an image does not see":                                                                   {Conda: "/srv", Command: ls},
		"--conda " + home + "/none: there is no such file":                                                                     {Conda: home + "/none", Command: ls},
		"--conda " + root + "/bob: you cannot reach it":                                                                        {Conda: root + "/bob", Command: ls},
		"--venv " + home + "/bobs: you cannot reach it":                                                                        {Venv: home + "/bobs", Command: ls},
		"--venv " + home + "/out: a task without an image":                                                                     {Venv: home + "/out", Command: ls},
		"--venv " + home + "/leaky: its bin/python leads out":                                                                  {Venv: home + "/leaky", Command: ls},
		"--venv " + home + "/empty: no virtual environment":                                                                    {Venv: home + "/empty", Command: ls},
		"/usr is the machine's, read-only, and has no such":                                                                    {Host: true, Command: ls, Mounts: []api.Mount{{Source: home, Target: "/usr/none/x"}}},
		"--host: it takes the place of the image i; leave":                                                                     {Host: true, Image: "i", Command: ls},
		"--conda: no program named":                                                                                            {Conda: home + "/c/envs/exp"},
		"image: missing; a task runs a container image, or":                                                                    {Command: ls},
		"it is carma's own":                {Image: bare.Image, Command: ls},
		"--venv \"/a\\x00\": it has a NUL": {Venv: "/a\x00", Command: ls},
	} {
		g.refusedWith(who, s, words)
	}
	// A link to an accessible file is accepted, and the container gets the real path.
	for _, s := range []api.Submit{{Venv: home + "/in", Command: ls}, {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: home + "/in"}}, {Host: true, Command: ls, ContainerOptions: api.ContainerOptions{WorkDir: "/m/x"}, Mounts: []api.Mount{{Source: home, Target: "/m"}}}} {
		s.Mem = 1 << 30
		if task := g.finished(g.runAs(who, s)); task.Phase != "succeeded" {
			t.Errorf("%+v: %s, %s", s, task.Phase, task.Reason)
		}
	}
}

// TestBareWho checks that the administrator decides who may run tasks without an image, and
// that earlier submissions are refused at their launch.
func TestBareWho(t *testing.T) {
	g, home, _ := hostRig(t)
	s := api.Submit{Host: true, Command: []string{"ls"}, Mem: 1 << 30}
	member := annAt(home)
	member.Groups = []string{"trusted"}
	for may, want := range map[string][3]string{ // ann, in group trusted, an admin
		"all":     {"", "", ""},
		"trusted": {"are for group trusted here", "", ""},
		"admins":  {"are for administrators here", "are for administrators here", ""},
		"none":    {"runs no tasks without an image", "runs no tasks without an image", "runs no tasks without an image"},
		"":        {"runs no tasks without an image", "runs no tasks without an image", "runs no tasks without an image"},
	} {
		g.live().HostTasks = may
		for i, who := range []request.Caller{annAt(home), member, oper} {
			switch err := g.host.MayRun(who); {
			case want[i] == "" && err != nil, want[i] != "" && (err == nil || !strings.Contains(err.Error(), want[i])):
				t.Errorf("host-tasks %q, %s of %v: %v", may, who.Name, who.Groups, err)
			}
		}
	}
	g.live().HostTasks = "none" // after the submission
	_, done, err := g.places.Place(g.ctx(), &record.Record{Submit: s, UID: ann.UID, GID: ann.GID}, "carma-1", nil, containerfiles.Extra{})
	if done(); !errors.Is(err, containers.ErrInvalid) || !strings.Contains(err.Error(), "runs no tasks without an image") {
		t.Errorf("at the launch: %v", err)
	}
}

// TestBareProbe: the probe of a task without an image sees the same folders, and cannot write
// to any.
func TestBareProbe(t *testing.T) {
	asked := make(chan probe.Request, 1)
	g, home, _ := hostRig(t, withProbes, func(g *rig) {
		g.opt.Probing.Run = func(_ context.Context, _ containers.Driver, q probe.Request) (*models.Config, error) {
			asked <- q
			return nil, &probe.FailedError{Reason: "enough"}
		}
	})
	ref := g.runAs(annAt(home), api.Submit{Conda: home + "/c/envs/exp", Command: []string{"python"}, Probe: true})
	q := <-asked
	g.finished(ref)
	if q.Image != bare.Image || q.Command[0] != "/bin/sh" || len(q.Mounts) != 3 || !slices.Contains(q.Env, "CONDA_DEFAULT_ENV=exp") {
		t.Errorf("%+v", q)
	}
	for _, m := range q.Mounts {
		if !m.ReadOnly {
			t.Errorf("%s can be written to", m.Target)
		}
	}
	if g.engine.Calls(containerstest.OpImport) != 1 {
		t.Error("its image was not made")
	}
}

// refusedWith checks that a submission is refused, with words.
func (g *rig) refusedWith(who request.Caller, s api.Submit, words string) {
	g.t.Helper()
	_, err := g.admission.Submit(g.ctx(), who, s)
	refused, ok := err.(*request.Error)
	if !ok || refused.Status < 400 || refused.Status > 499 || !strings.Contains(refused.Text, words) || strings.ContainsAny(refused.Text, "\n\x00") {
		g.t.Errorf("%+v: %v, want %q", s, err, words)
	}
}
