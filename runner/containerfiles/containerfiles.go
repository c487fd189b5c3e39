// Package containerfiles prepares the files that a container gets beside its image: it opens
// and checks the mounts of its user and shows them to the engine at places that nobody can
// change ([Places.Place]), and it writes the secrets, configs and copied files of suites
// ([Places.Add]). It owns the folders with these places and files, and removes what containers
// leave there.
package containerfiles

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper"
	"carma/runner/hostenv"
	"carma/runner/label"
	"carma/runner/mounts"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/usermounts"

	"github.com/rs/zerolog"
)

// placeLimit bounds the check of a user's files at the launch.
const placeLimit = time.Minute

// Config has what the places need of the daemon.
type Config struct {
	Driver   containers.Driver
	Opener   *usermounts.Opener
	Host     *hostenv.Environment
	Users    func(uid, gid int) request.Caller // looks up a user of the system
	MountDir string                            // folder with the places of mounts, or "" if there is none
	DataDir  string
	Instance string          // labels the containers of the data folder
	Work     context.Context // ends when the daemon stops
	Log      zerolog.Logger
}

// Places prepares the files of containers. Safe for concurrent use.
type Places struct{ cfg Config }

// New returns the places of a daemon.
func New(cfg Config) *Places { return &Places{cfg} }

// Restore places the mounts of a container that an earlier daemon has created. If the
// container has started since, done only has to remove its places.
func (p *Places) Restore(ctx context.Context, rec *record.Record, c *containers.Container) (done func(), err error) {
	if c.State != containers.StateCreated {
		return func() { p.Remove(ctx, rec, c.Name) }, nil
	}
	_, done, err = p.Place(ctx, rec, c.Name, Mounts(rec), Extra{})
	return done, err
}

// Mounts returns the mounts that a task requests.
func Mounts(rec *record.Record) (list []containers.Mount) {
	for _, m := range rec.Submit.Mounts {
		list = append(list, containers.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return list
}

// Place replaces the sources of a user's mounts by places that show the files that were
// opened and checked. For a task without an image, host are the mounts of the machine's
// folders. done, never nil, removes the places. It leaves them if the daemon is stopping,
// because the engine may be about to use them, and the next daemon continues.
func (p *Places) Place(ctx context.Context, rec *record.Record, name string, list []containers.Mount, in Extra) (host []containers.Mount, done func(), err error) {
	done = func() { p.Remove(ctx, rec, name) }
	if !p.hasPlaces(rec) {
		return nil, done, nil
	}
	near := p.cfg.Opener.SameFiles()
	if near != nil && !errors.Is(near, containers.ErrRemote) {
		return nil, done, near
	}
	who := p.cfg.Users(rec.UID, rec.GID)
	var sources []*mounts.Source
	defer func() {
		for _, s := range sources {
			s.Close()
		}
	}()
	if usermounts.MayMountAll(rec.UID) {
		list = nil
	}
	for _, m := range list {
		s, err := p.cfg.Opener.Open(ctx, who, p.cfg.Opener.Allowed(), m.Source, placeLimit)
		if err == nil {
			s.Guarded = in.files
			sources = append(sources, s)
			continue
		}
		text := "-v " + m.Source + ": " + p.cfg.Opener.Refusal(err)
		if usermounts.NotMountable(err) {
			return nil, done, fmt.Errorf("%w: %s", containers.ErrInvalid, text)
		}
		return nil, done, errors.New(text)
	}
	if err := in.makePoints(usermounts.User(who), list, sources); err != nil {
		return nil, done, err
	}
	if rec.Submit.Bare() {
		shown, err := p.cfg.Host.Expose(ctx, who, &rec.Submit, placeLimit)
		for _, f := range shown {
			sources = append(sources, f.Source)
			host = append(host, containers.Mount{Source: f.Source.Path, Target: f.Target, ReadOnly: f.Source.ReadOnly})
		}
		if err != nil {
			return nil, done, err
		}
	}
	if p.cfg.MountDir == "" || near != nil {
		return host, done, nil
	}
	places, err := p.stage().Place(name, sources)
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
func (p *Places) hasPlaces(rec *record.Record) bool {
	return rec.Submit.Bare() || len(rec.Submit.Mounts) > 0 && !usermounts.MayMountAll(rec.UID)
}

// Remove removes the places and the files of a container, unless the daemon is stopping.
func (p *Places) Remove(ctx context.Context, rec *record.Record, name string) {
	if ctx.Err() != nil && p.cfg.Work.Err() != nil {
		return
	}
	if err := p.suiteFiles().Clear(name); err != nil {
		p.cfg.Log.Warn().Err(err).Str("container", name).Msg("the files of a suite could not be removed; the next start does it")
	}
	if p.cfg.MountDir == "" || !p.hasPlaces(rec) {
		return
	}
	if err := p.stage().Clear(name); err != nil {
		p.cfg.Log.Warn().Err(err).Str("container", name).Msg("the places of its mounts could not be removed; the next start does it")
	}
}

func (p *Places) stage() *mounts.Stage {
	return &mounts.Stage{Dir: filepath.Join(p.cfg.MountDir, p.cfg.Instance)}
}

// Sweep removes the places and files that an earlier daemon made, except those
// of attempts that may be starting, and of helpers.
func (p *Places) Sweep(state *mapper.State, helper func(name string) bool) {
	starting := map[string]bool{}
	for _, t := range state.Tasks() {
		if a := t.Current(); a != nil && a.Started == units.Instant(0) {
			starting[label.ContainerName(p.cfg.Instance, t.ID, a.N)] = true
		}
	}
	keep := func(name string) bool { return starting[name] || helper(name) }
	if err := p.suiteFiles().Sweep(keep); err != nil {
		p.cfg.Log.Warn().Err(err).Msg("the files of an earlier daemon's suites could not be removed")
	}
	if p.cfg.MountDir == "" {
		return
	}
	if err := p.stage().Sweep(keep); err != nil {
		p.cfg.Log.Warn().Err(err).Msg("the places of mounts of an earlier daemon could not be removed")
	}
	p.stage().SweepEmpty()
}
