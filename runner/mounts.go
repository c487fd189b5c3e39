package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/label"
	"carma/runner/mounts"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"

	"golang.org/x/sys/unix"
)

const (
	// openLimit bounds the check of a user's files at a submission, placeLimit
	// at the launch: a network file system may hang.
	openLimit  = 5 * time.Second
	placeLimit = time.Minute
	// maxOpening is the largest number of such checks that run at a time, including hanging
	// ones.
	maxOpening = 64
)

// mayMountAll reports whether a user's mounts need no check. This holds for root, and for
// the user that the daemon runs as, who can use the engine directly.
func mayMountAll(uid int) bool {
	return rights.Policy{Account: os.Geteuid()}.MayServer(rights.MountAll, rights.Caller{UID: uid})
}

// checkMountPaths refuses mounts that nobody can have.
func checkMountPaths(list []api.Mount) error {
	for _, m := range list {
		if !filepath.IsAbs(m.Source) || !filepath.IsAbs(m.Target) {
			return request.Errorf(422, "-v %s:%s: both paths must be absolute", m.Source, m.Target)
		}
		if filepath.Clean(m.Target) == "/" {
			return request.Errorf(422, "-v %s:%s: a folder cannot take the place of the container's root; write for example -v %s:/data", m.Source, m.Target, m.Source)
		}
	}
	return nil
}

// mountCheck returns a function that checks a submission's mounts and opens each source
// once. It only reports mistakes early; the check at the launch decides.
func (r *Runner) mountCheck(ctx context.Context, who request.Caller) func([]api.Mount) error {
	known := map[string]error{}
	return func(list []api.Mount) error {
		for _, m := range list {
			err, ok := known[m.Source]
			if !ok {
				err = r.mayMount(ctx, who, m.Source)
				known[m.Source] = err
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func (r *Runner) mayMount(ctx context.Context, who request.Caller, source string) error {
	if mayMountAll(who.UID) {
		if _, err := os.Stat(source); err != nil {
			return request.Errorf(422, "-v %s: %v", source, errors.Unwrap(err))
		}
		return nil
	}
	if err := r.engineNear(); err != nil && !errors.Is(err, containers.ErrRemote) && !errors.Is(err, containers.ErrUnavailable) {
		return request.Errorf(403, "-v %s: %v; only root may mount folders until an administrator changes that", source, err)
	}
	s, err := r.openMount(ctx, who, r.live().AllowedMounts, source, openLimit)
	if err == nil {
		s.Close()
		return nil
	}
	text := "-v " + source + ": " + r.mountRefusal(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errFilesHang):
		return request.Errorf(503, "%s", text)
	case notMountable(err) && !errors.Is(err, unix.ENOENT):
		return request.Errorf(403, "%s", text)
	}
	return request.Errorf(422, "%s", text)
}

var errFilesHang = errors.New("its file system does not answer; try again when it does")

// openMount opens a file or folder as a user, if it lies in an allowed folder.
// After limit it returns errFilesHang.
func (r *Runner) openMount(ctx context.Context, who request.Caller, allowed []string, source string, limit time.Duration) (*mounts.Source, error) {
	select {
	case r.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(limit):
		return nil, errFilesHang
	}
	type opened struct {
		s   *mounts.Source
		err error
	}
	done := make(chan opened, 1)
	go func() { // this goroutine ends when the file system answers
		s, err := mounts.Gate{Allowed: allowed}.Open(mountsUser(who), source)
		<-r.opening
		done <- opened{s, err}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errFilesHang)
	defer cancel()
	select {
	case o := <-done:
		return o.s, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.s.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func mountsUser(who request.Caller) mounts.User {
	return mounts.User{UID: who.UID, GID: who.GID, Groups: who.GIDs, Home: who.Home}
}

// notMountable reports whether the request itself is wrong, so that another try does not
// help.
func notMountable(err error) bool {
	var outside *mounts.OutsideError
	if errors.As(err, &outside) || errors.Is(err, mounts.ErrOthers) {
		return true
	}
	for _, e := range []error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// mountRefusal returns a text with the reason why a mount is refused, and with the allowed
// mounts.
func (r *Runner) mountRefusal(err error) string {
	if errors.Is(err, unix.EACCES) {
		return fmt.Sprintf("you cannot reach it yourself (permission denied); you may mount only below %s, and only what you can reach", strings.Join(r.live().AllowedMounts, ", "))
	}
	return err.Error()
}

// engineNear returns nil if the engine sees the same files as the daemon.
func (r *Runner) engineNear() error {
	if near, ok := engine.As[containers.Near](r.Driver); ok && r.opt.MountDir != "" {
		return near.SameFiles()
	}
	return nil
}

// restoreMounts places the mounts of a container that an earlier daemon has created. If the
// container has started since, done only has to remove its places.
func (r *Runner) restoreMounts(ctx context.Context, rec *record.Record, c *containers.Container) (done func(), err error) {
	if c.State != containers.StateCreated {
		return func() { r.unplace(ctx, rec, c.Name) }, nil
	}
	_, done, err = r.place(ctx, rec, c.Name, bindMounts(rec), ownMounts{})
	return done, err
}

// bindMounts returns the mounts that a task requests.
func bindMounts(rec *record.Record) (list []containers.Mount) {
	for _, m := range rec.Submit.Mounts {
		list = append(list, containers.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return list
}

// place replaces the sources of a user's mounts by places that show the files that were
// opened and checked. For a task without an image, host are the mounts of the machine's
// folders. done, never nil, removes the places. It leaves them if the daemon is stopping,
// because the engine may be about to use them, and the next daemon continues.
func (r *Runner) place(ctx context.Context, rec *record.Record, name string, list []containers.Mount, in ownMounts) (host []containers.Mount, done func(), err error) {
	done = func() { r.unplace(ctx, rec, name) }
	if !r.hasPlaces(rec) {
		return nil, done, nil
	}
	near := r.engineNear()
	if near != nil && !errors.Is(near, containers.ErrRemote) {
		return nil, done, near
	}
	who := r.users(rec.UID, rec.GID)
	var sources []*mounts.Source
	defer func() {
		for _, s := range sources {
			s.Close()
		}
	}()
	if mayMountAll(rec.UID) {
		list = nil
	}
	for _, m := range list {
		s, err := r.openMount(ctx, who, r.live().AllowedMounts, m.Source, placeLimit)
		if err == nil {
			s.Guarded = in.files
			sources = append(sources, s)
			continue
		}
		text := "-v " + m.Source + ": " + r.mountRefusal(err)
		if notMountable(err) {
			return nil, done, fmt.Errorf("%w: %s", containers.ErrInvalid, text)
		}
		return nil, done, errors.New(text)
	}
	if err := in.makePoints(mountsUser(who), list, sources); err != nil {
		return nil, done, err
	}
	if rec.Submit.Bare() {
		shown, err := r.exposeHost(ctx, who, &rec.Submit, placeLimit)
		for _, f := range shown {
			sources = append(sources, f.source)
			host = append(host, containers.Mount{Source: f.source.Path, Target: f.target, ReadOnly: f.source.ReadOnly})
		}
		if err != nil {
			return nil, done, err
		}
	}
	if r.opt.MountDir == "" || near != nil {
		return host, done, nil
	}
	places, err := r.stage().Place(name, sources)
	if errors.Is(err, mounts.ErrNoGuard) {
		err = fmt.Errorf("%w: a task or helper with secrets or configs: %w; leave out the secrets and configs, or that mount", containers.ErrInvalid, err)
	}
	if err != nil {
		return nil, done, err
	}
	for i := range list {
		list[i].Source = places[i]
	}
	for i := range host {
		host[i].Source = places[len(list)+i]
	}
	return host, done, nil
}

// hasPlaces reports whether a task has mounts with places.
func (r *Runner) hasPlaces(rec *record.Record) bool {
	return rec.Submit.Bare() || len(rec.Submit.Mounts) > 0 && !mayMountAll(rec.UID)
}

func (r *Runner) unplace(ctx context.Context, rec *record.Record, name string) {
	if ctx.Err() != nil && r.work.Err() != nil {
		return
	}
	if err := r.suiteFiles().Clear(name); err != nil {
		r.Log.Warn().Err(err).Str("container", name).Msg("the files of a suite could not be removed; the next start does it")
	}
	if r.opt.MountDir == "" || !r.hasPlaces(rec) {
		return
	}
	if err := r.stage().Clear(name); err != nil {
		r.Log.Warn().Err(err).Str("container", name).Msg("the places of its mounts could not be removed; the next start does it")
	}
}

func (r *Runner) stage() *mounts.Stage {
	return &mounts.Stage{Dir: filepath.Join(r.opt.MountDir, r.instance)}
}

// sweepMounts removes the places and files that an earlier daemon made, except those
// of attempts that may be starting, and of helpers.
func (r *Runner) sweepMounts() {
	starting := map[string]bool{}
	for _, t := range r.loop.State().Tasks() {
		if a := t.Current(); a != nil && a.Started == units.Instant(0) {
			starting[label.ContainerName(r.instance, t.ID, a.N)] = true
		}
	}
	keep := func(name string) bool { return starting[name] || r.helpers.Has(name) }
	if err := r.suiteFiles().Sweep(keep); err != nil {
		r.Log.Warn().Err(err).Msg("the files of an earlier daemon's suites could not be removed")
	}
	if r.opt.MountDir == "" {
		return
	}
	if err := r.stage().Sweep(keep); err != nil {
		r.Log.Warn().Err(err).Msg("the places of mounts of an earlier daemon could not be removed")
	}
	r.stage().SweepEmpty()
}
