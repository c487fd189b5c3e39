package runner

import (
	"bytes"
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
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/mounts"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// hostImages is the prefix of the names of carma's own images.
const hostImages = "carma.invalid/"

// Values of the setting host-tasks beside the name of a group.
const (
	hostTasksAll    = "all"
	hostTasksAdmins = "admins"
	hostTasksNone   = "none"
)

// mayRunBare refuses a task without an image if the caller may not run one, or if none can
// run here.
func (r *Runner) mayRunBare(who request.Caller) error {
	switch may := cmp.Or(r.live().HostTasks, hostTasksNone); {
	case may == hostTasksNone:
		return request.Errorf(403, "this server runs no tasks without an image (host-tasks in the daemon's configuration); name an image")
	case may == hostTasksAll || r.authz.MayServer(rights.HostTasks, who) || slices.Contains(who.Groups, may):
	case may == hostTasksAdmins:
		return request.Errorf(403, "tasks without an image are for administrators here (host-tasks); name an image")
	default:
		return request.Errorf(403, "tasks without an image are for group %s here (host-tasks); name an image", may)
	}
	if !mayMountAll(who.UID) && r.opt.MountDir == "" {
		return request.Errorf(403, "no task without an image: %v", mounts.ErrOthers)
	}
	if r.opt.MountDir != "" {
		if err := mounts.Sealable(); err != nil {
			return request.Errorf(403, "no task without an image: %v", err)
		}
	}
	if near, ok := engine.As[containers.Near](r.Driver); ok {
		if err := near.SameFiles(); err != nil && !errors.Is(err, containers.ErrUnavailable) {
			return request.Errorf(403, "no task without an image: %v", err)
		}
	}
	return nil
}

// exposedFolder is a folder of the machine in the container of a task without an image.
type exposedFolder struct {
	source *mounts.Source
	target string
}

// exposeHost opens the folders that a task without an image sees: the folders that the
// submitter may mount, at their own paths, and the machine's folders, read-only. Folders
// that the submitter cannot reach are left out. The caller closes the sources, also after
// an error.
func (r *Runner) exposeHost(ctx context.Context, who request.Caller, s *api.Submit, limit time.Duration) (list []exposedFolder, err error) {
	if err := r.mayRunBare(who); err != nil {
		return nil, fmt.Errorf("%w: %w", containers.ErrInvalid, err)
	}
	l := r.live()
	taken := map[string]bool{"/": true}
	for _, m := range s.Mounts {
		taken[filepath.Clean(m.Target)] = true
	}
	add := func(target string, allowed []string, readOnly bool) (real string, err error) {
		if target = filepath.Clean(target); taken[target] {
			return "", nil
		}
		source, err := r.openMount(ctx, who, allowed, target, limit)
		if notMountable(err) {
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
		list = append(list, exposedFolder{source, target})
		return source.Path, nil
	}
	for _, dir := range l.AllowedMounts {
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
	for _, dir := range l.HostFolders {
		if _, err := add(dir, []string{dir}, true); err != nil {
			return list, err
		}
	}
	return list, nil
}

// makeHostImage brings the image of tasks without an image onto the machine. The daemon
// itself builds it.
func (r *Runner) makeHostImage(ctx context.Context) error {
	tar, err := bare.Archive()
	if err != nil {
		return err
	}
	return r.importImage(ctx, tar)
}

// importImage brings an image of carma's own onto the machine.
func (r *Runner) importImage(ctx context.Context, tar []byte) error {
	maker, ok := engine.As[containers.Importer](r.Driver)
	if !ok {
		return fmt.Errorf("%w: driver %s cannot make carma's own images", containers.ErrInvalid, r.Driver.Name())
	}
	_, err := r.engine.Retry(ctx, func() error {
		return engine.Within(ctx, engine.CreateLimit, "make image", func(ctx context.Context) error {
			_, err := maker.Import(ctx, bytes.NewReader(tar))
			return err
		})
	})
	return err
}

// program returns the program of a task without an image. The program has no home if the
// task does not see the user's home.
func (r *Runner) program(rec *record.Record, host []containers.Mount) bare.Program {
	who, home := r.users(rec.UID, rec.GID), containers.ScratchDir
	if slices.ContainsFunc(host, func(m containers.Mount) bool { return below(filepath.Clean(who.Home), m.Target) }) && who.Home != "" {
		home = filepath.Clean(who.Home)
	}
	return bare.Program{Conda: rec.Submit.Conda, Venv: rec.Submit.Venv, User: who.Name, Home: home, Command: rec.Submit.Command}
}

// addHostMounts completes the container of a task without an image. The submitter has all
// groups in it, as at a terminal, because folders of a lab are often open to a group.
func (r *Runner) addHostMounts(spec *containers.Spec, rec *record.Record, host []containers.Mount) {
	p := r.program(rec, host)
	for _, gid := range r.users(rec.UID, rec.GID).GIDs {
		if group := strconv.Itoa(gid); rec.UID != 0 && gid != rec.GID && !slices.Contains(spec.Groups, group) {
			spec.Groups = append(spec.Groups, group)
		}
	}
	spec.Image, spec.Command, spec.WorkDir = bare.Image, p.Words(), cmp.Or(spec.WorkDir, p.Home)
	spec.Env = append(p.Env(spec.Env), spec.Env...)
	spec.Mounts = append(spec.Mounts, host...)
	if spec.Init && r.opt.Init != "" { // the engine's own init would be in /sbin, which is the machine's folder and read-only
		spec.Init, spec.Command = false, append([]string{containers.InitTarget, "reap"}, spec.Command...)
		spec.Mounts = append(spec.Mounts, containers.Mount{Source: r.opt.Init, Target: containers.InitTarget, ReadOnly: true})
	}
}

// furnishProbe completes the probe of a task without an image. The probe has no writable
// folder.
func (r *Runner) furnishProbe(ctx context.Context, rec *record.Record, q *probe.Request, host []containers.Mount) error {
	if _, err := r.Driver.Image(ctx, bare.Image); errors.Is(err, containers.ErrNotFound) {
		if err := r.makeHostImage(ctx); err != nil {
			return err
		}
	}
	p := r.program(rec, host)
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
