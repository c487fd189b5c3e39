// Package hostenv runs tasks without an image in an environment of the machine: it decides who
// may run them and which folders of the machine they see, checks a submitted task against
// these folders ([Environment.Check]), and completes their containers and probes.
package hostenv

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/containers"
	"carma/containers/bare"
	"carma/estimator/probe"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/mounts"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/usermounts"
)

// ImagePrefix is the prefix of the names of carma's own images.
const ImagePrefix = "carma.invalid/"

// Values of the setting host-tasks beside the name of a group.
const (
	hostTasksAll    = "all"
	hostTasksAdmins = "admins"
	hostTasksNone   = "none"
)

// Settings are the settings of tasks without an image, which can change.
type Settings struct {
	Tasks   string   // who may run them: all, admins, none, or the name of a group
	Folders []string // folders of the machine that they see
}

// Config has what an environment needs of the daemon.
type Config struct {
	Driver   containers.Driver
	Engine   *engine.Health
	Authz    *access.Authorizer
	Opener   *usermounts.Opener
	Users    func(uid, gid int) request.Caller // looks up a user of the system
	Settings func() Settings
	MountDir string // folder with the places of mounts, or "" if there is none
	Init     string // path of carma-init, or "" if it is missing
}

// Environment is the machine as tasks without an image see it. Safe for concurrent use.
type Environment struct{ cfg Config }

// New returns the environment of a machine.
func New(cfg Config) *Environment { return &Environment{cfg} }

// MayRun refuses a task without an image if the caller may not run one, or if none can
// run here.
func (e *Environment) MayRun(who request.Caller) error {
	switch may := cmp.Or(e.cfg.Settings().Tasks, hostTasksNone); {
	case may == hostTasksNone:
		return request.Errorf(403, "this server runs no tasks without an image (host-tasks in the daemon's configuration); name an image")
	case may == hostTasksAll || e.cfg.Authz.MayServer(rights.HostTasks, who) || slices.Contains(who.Groups, may):
	case may == hostTasksAdmins:
		return request.Errorf(403, "tasks without an image are for administrators here (host-tasks); name an image")
	default:
		return request.Errorf(403, "tasks without an image are for group %s here (host-tasks); name an image", may)
	}
	if !usermounts.MayMountAll(who.UID) && e.cfg.MountDir == "" {
		return request.Errorf(403, "no task without an image: %v", mounts.ErrOthers)
	}
	if e.cfg.MountDir != "" {
		if err := mounts.Sealable(); err != nil {
			return request.Errorf(403, "no task without an image: %v", err)
		}
	}
	if near, ok := engine.As[containers.Near](e.cfg.Driver); ok {
		if err := near.SameFiles(); err != nil && !errors.Is(err, containers.ErrUnavailable) {
			return request.Errorf(403, "no task without an image: %v", err)
		}
	}
	return nil
}

// Folder is a folder of the machine in the container of a task without an image.
type Folder struct {
	Source *mounts.Source
	Target string
}

// Expose opens the folders that a task without an image sees: the folders that the
// submitter may mount, at their own paths, and the machine's folders, read-only. Folders
// that the submitter cannot reach are left out. The caller closes the sources, also after
// an error.
func (e *Environment) Expose(ctx context.Context, who request.Caller, s *api.Submit, limit time.Duration) (list []Folder, err error) {
	if err := e.MayRun(who); err != nil {
		return nil, fmt.Errorf("%w: %w", containers.ErrInvalid, err)
	}
	taken := map[string]bool{"/": true}
	for _, m := range s.Mounts {
		taken[filepath.Clean(m.Target)] = true
	}
	add := func(target string, allowed []string, readOnly bool) (real string, err error) {
		if target = filepath.Clean(target); taken[target] {
			return "", nil
		}
		source, err := e.cfg.Opener.Open(ctx, who, allowed, target, limit)
		if usermounts.NotMountable(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", target, err)
		}
		if !source.IsDir() || source.Path == "/" {
			source.Close()
			return "", nil
		}
		sum := sha256.Sum256([]byte(target))
		source.ReadOnly, source.Name = readOnly, "host-"+hex.EncodeToString(sum[:6])
		taken[target] = true
		list = append(list, Folder{source, target})
		return source.Path, nil
	}
	for _, dir := range e.cfg.Opener.Allowed() {
		path := dir
		if below, ofHome := strings.CutPrefix(dir, "~"); ofHome {
			if who.Home == "" || filepath.Clean(who.Home) == "/" {
				continue
			}
			path = who.Home + below
		}
		real, err := add(path, []string{dir}, false)
		if err == nil && real != "" && real != filepath.Clean(path) { // programs also use the path to which a link leads
			_, err = add(real, []string{dir}, false)
		}
		if err != nil {
			return list, err
		}
	}
	for _, dir := range e.cfg.Settings().Folders {
		if _, err := add(dir, []string{dir}, true); err != nil {
			return list, err
		}
	}
	return list, nil
}

// MakeImage brings the image of tasks without an image onto the machine. The daemon
// itself builds it.
func (e *Environment) MakeImage(ctx context.Context) error {
	tar, err := bare.Archive()
	if err != nil {
		return err
	}
	return e.cfg.Engine.Import(ctx, tar)
}

// program returns the program of a task without an image. The program has no home if the
// task does not see the user's home.
func (e *Environment) program(rec *record.Record, host []containers.Mount) bare.Program {
	who, home := e.cfg.Users(rec.UID, rec.GID), containers.ScratchDir
	if slices.ContainsFunc(host, func(m containers.Mount) bool { return below(filepath.Clean(who.Home), m.Target) }) && who.Home != "" {
		home = filepath.Clean(who.Home)
	}
	return bare.Program{Conda: rec.Submit.Conda, Venv: rec.Submit.Venv, User: who.Name, Home: home, Command: rec.Submit.Command}
}

// Furnish completes the container of a task without an image. The submitter has all
// groups in it, as at a terminal, because folders of a lab are often open to a group.
func (e *Environment) Furnish(spec *containers.Spec, rec *record.Record, host []containers.Mount) {
	p := e.program(rec, host)
	for _, gid := range e.cfg.Users(rec.UID, rec.GID).GIDs {
		if group := strconv.Itoa(gid); rec.UID != 0 && gid != rec.GID && !slices.Contains(spec.Groups, group) {
			spec.Groups = append(spec.Groups, group)
		}
	}
	spec.Image, spec.Command, spec.WorkDir = bare.Image, p.Words(), cmp.Or(spec.WorkDir, p.Home)
	spec.Env = append(p.Env(spec.Env), spec.Env...)
	spec.Mounts = append(spec.Mounts, host...)
	if spec.Init && e.cfg.Init != "" { // the engine's own init would be in /sbin, which is the machine's folder and read-only
		spec.Init, spec.Command = false, append([]string{containers.InitTarget, "reap"}, spec.Command...)
		spec.Mounts = append(spec.Mounts, containers.Mount{Source: e.cfg.Init, Target: containers.InitTarget, ReadOnly: true})
	}
}

// FurnishProbe completes the probe of a task without an image. The probe has no writable
// folder.
func (e *Environment) FurnishProbe(ctx context.Context, rec *record.Record, q *probe.Request, host []containers.Mount) error {
	if _, err := e.cfg.Driver.Image(ctx, bare.Image); errors.Is(err, containers.ErrNotFound) {
		if err := e.MakeImage(ctx); err != nil {
			return err
		}
	}
	p := e.program(rec, host)
	q.Image, q.Command, q.WorkDir = bare.Image, p.Words(), cmp.Or(q.WorkDir, p.Home)
	q.Env = append(p.Env(q.Env), q.Env...)
	for _, m := range host {
		m.ReadOnly = true
		q.Mounts = append(q.Mounts, m)
	}
	return nil
}

// below reports whether a path is a folder or lies below it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
