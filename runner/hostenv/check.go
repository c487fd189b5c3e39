package hostenv

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"carma/runner/api"
	"carma/runner/mounts"
	"carma/runner/request"
	"carma/runner/usermounts"

	"golang.org/x/sys/unix"
)

// Check returns a function that checks a well-formed task without an image: whether its
// submitter may run it, and whether it will see its working folder and its environment.
// The function returns the task with a working folder that the container has. It only
// reports mistakes early, since the folders of a task are decided at its launch.
func (e *Environment) Check(ctx context.Context, who request.Caller) func(api.Submit) (api.Submit, error) {
	type places struct {
		conda, venv, workDir string
		init                 bool
	}
	type result struct {
		workDir string
		err     error
	}
	known := map[places]result{}
	return func(s api.Submit) (api.Submit, error) {
		at := places{s.Conda, s.Venv, s.WorkDir, s.Init}
		have, ok := known[at]
		if !ok {
			have.workDir, have.err = e.checkHost(ctx, who, s)
			known[at] = have
		}
		s.WorkDir = have.workDir
		return s, have.err
	}
}

// hostFolders are the folders that a task without an image sees.
type hostFolders struct {
	env    *Environment
	who    request.Caller
	own    []string // folders that the submitter may mount
	all    []string // own and the machine's folders
	mounts []api.Mount
}

// checkHost checks the needs of a task without an image on the machine, and returns its
// working folder.
func (e *Environment) checkHost(ctx context.Context, who request.Caller, s api.Submit) (workDir string, err error) {
	if err := e.MayRun(who); err != nil {
		return "", err
	}
	if s.Init && e.cfg.Init == "" {
		return "", request.Errorf(422, "--init: carma-init is not there; it belongs beside carma (make build)")
	}
	for option, path := range map[string]string{"--conda": s.Conda, "--venv": s.Venv} {
		if path != "" && !filepath.IsAbs(path) {
			return "", request.Errorf(422, "%s %s: not the full path of a folder; carma run finds an environment by its name", option, path)
		}
	}
	list, err := e.Expose(ctx, who, &s, usermounts.SubmitLimit)
	look := &hostFolders{env: e, who: who, mounts: s.Mounts}
	for _, f := range list {
		if look.all = append(look.all, f.Target); !f.Source.ReadOnly {
			look.own = append(look.own, f.Target)
		}
		f.Source.Close()
	}
	if err != nil {
		return "", request.Errorf(503, "no task without an image: %v", err)
	}
	if workDir, err = look.workDir(ctx, s.WorkDir); err != nil {
		return "", err
	}
	if s.Conda != "" {
		return workDir, look.environment(ctx, "--conda", s.Conda, false)
	}
	if s.Venv != "" {
		return workDir, look.environment(ctx, "--venv", s.Venv, true)
	}
	return workDir, look.targets(ctx)
}

// mounted reports whether a path is on one of the task's own mounts, which another check
// covers.
func (l *hostFolders) mounted(path string) bool {
	return slices.ContainsFunc(l.mounts, func(m api.Mount) bool { return below(filepath.Clean(path), filepath.Clean(m.Target)) })
}

// open opens a file or folder that the task sees, as its submitter.
func (l *hostFolders) open(ctx context.Context, path string) (real string, dir bool, err error) {
	s, err := l.env.cfg.Opener.Open(ctx, l.who, l.all, path, usermounts.SubmitLimit)
	if err != nil {
		return "", false, err
	}
	defer s.Close()
	return s.Path, s.IsDir(), nil
}

// refuse returns the error with the reason why a task without an image cannot have a file or
// folder.
func (l *hostFolders) refuse(what string, err error) error {
	var outside *mounts.OutsideError
	switch {
	case errors.As(err, &outside):
		return request.Errorf(422, "%s: a task without an image does not see it; it sees the machine's programs and %s; mount more with -v", what, l.folders())
	case errors.Is(err, unix.EACCES):
		return request.Errorf(403, "%s: you cannot reach it yourself (permission denied)", what)
	case errors.Is(err, unix.ENOENT):
		return request.Errorf(422, "%s: there is no such file or folder", what)
	case errors.Is(err, usermounts.ErrHang):
		return request.Errorf(503, "%s: %v", what, err)
	}
	return request.Errorf(422, "%s: %v", what, err)
}

func (l *hostFolders) folders() string {
	if len(l.own) == 0 {
		return "nothing of yours (allowed-mounts)"
	}
	return strings.Join(l.own, ", ")
}

// workDir returns the working folder as the container has it.
func (l *hostFolders) workDir(ctx context.Context, path string) (string, error) {
	if path == "" || l.mounted(path) {
		return path, nil
	}
	what := "working folder " + path
	real, dir, err := l.open(ctx, path)
	var outside *mounts.OutsideError
	switch clean := filepath.Clean(path); {
	case errors.As(err, &outside):
		return "", request.Errorf(422, "%s: a task without an image does not see it; it sees the machine's programs and %s; start it from there, write -w FOLDER, or mount this one with -v", what, l.folders())
	case err != nil:
		return "", l.refuse(what, err)
	case !dir:
		return "", request.Errorf(422, "%s: it is no folder", what)
	case slices.ContainsFunc(l.all, func(folder string) bool { return below(clean, folder) }):
		return clean, nil
	}
	return real, nil // the container does not have the link that leads there
}

// environment checks that the folder of an environment and its Python exist.
func (l *hostFolders) environment(ctx context.Context, option, path string, needsPython bool) error {
	if l.mounted(path) {
		return l.targets(ctx)
	}
	what := option + " " + path
	_, dir, err := l.open(ctx, path)
	switch {
	case err != nil:
		return l.refuse(what, err)
	case !dir:
		return request.Errorf(422, "%s: it is no folder", what)
	}
	var outside *mounts.OutsideError
	switch _, _, err := l.open(ctx, path+"/bin/python"); {
	case errors.As(err, &outside):
		return request.Errorf(422, "%s: its bin/python leads out of what a task without an image sees: the machine's programs and %s; make the environment with a Python from there", what, l.folders())
	case errors.Is(err, unix.ENOENT) && !needsPython: // an environment without Python
	case errors.Is(err, unix.ENOENT):
		return request.Errorf(422, "%s: no virtual environment: it has no bin/python", what)
	case err != nil:
		return l.refuse(what+"/bin/python", err)
	}
	return l.targets(ctx)
}

// targets refuses mounts into the machine's folders at paths that do not exist there,
// because no mount point can be made in a read-only folder.
func (l *hostFolders) targets(ctx context.Context) error {
	for _, m := range l.mounts {
		target := filepath.Clean(m.Target)
		for _, folder := range l.all {
			if slices.Contains(l.own, folder) || target == folder || !below(target, folder) {
				continue
			}
			if _, _, err := l.open(ctx, target); err != nil {
				return request.Errorf(422, "-v %s:%s: %s is the machine's, read-only, and has no such place; choose another target, for example /data", m.Source, m.Target, folder)
			}
		}
	}
	return nil
}
