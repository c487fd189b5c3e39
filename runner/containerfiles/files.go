package containerfiles

import (
	"errors"
	"fmt"
	"path/filepath"

	"carma/containers"
	"carma/containers/option"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/helpers"
	"carma/runner/mounts"
)

// suiteFiles keeps the secrets, configs and copied files of suites. They are in the data
// folder, which survives a restart of the machine, because the engine then restarts
// helpers before the daemon runs.
func (p *Places) suiteFiles() mounts.Files {
	return mounts.Files{Dir: filepath.Join(p.cfg.DataDir, "suite-files")}
}

// CanGive returns nil if the engine can mount files of the daemon. An engine that
// does not answer may be able to.
func (p *Places) CanGive() error {
	near, ok := engine.As[containers.Near](p.cfg.Driver)
	if !ok {
		return fmt.Errorf("the engine %s cannot mount files of this machine; write them into the image", p.cfg.Driver.Name())
	}
	err := near.SameFiles()
	switch {
	case errors.Is(err, containers.ErrUnavailable):
		return nil
	case errors.Is(err, containers.ErrRemote):
		return fmt.Errorf("%w, and they are mounted from the daemon's machine; use an engine of this machine (docker-host), or write them into the image", err)
	}
	return err
}

// Give writes the files of a container and returns the mounts that show them.
func (p *Places) Give(name string, files []api.SuiteFile) (shown []containers.Mount, err error) {
	if err := p.CanGive(); err != nil {
		return nil, fmt.Errorf("%w: secrets and configs: %w", containers.ErrInvalid, err)
	}
	list := make([]mounts.File, len(files))
	for i, f := range files {
		list[i] = mounts.File{Content: f.Content, UID: f.UID, GID: f.GID, Mode: f.Mode, Kept: f.Writable}
	}
	paths, err := p.suiteFiles().Write(name, list)
	if errors.Is(err, mounts.ErrOwner) {
		err = fmt.Errorf("%w: %w", containers.ErrInvalid, err)
	}
	if err != nil {
		return nil, fmt.Errorf("files of the suite: %w", err)
	}
	for i, f := range files {
		shown = append(shown, containers.Mount{Source: paths[i], Target: filepath.Clean(f.Path), ReadOnly: !f.Writable})
	}
	return shown, nil
}

// Add gives an attempt's container the files of its suite.
func (p *Places) Add(spec *containers.Spec, files []api.SuiteFile) error {
	if len(files) == 0 {
		return nil
	}
	if err := helpers.CheckFiles(files, covered(spec)); err != nil {
		return fmt.Errorf("%w: %w", containers.ErrInvalid, err)
	}
	shown, err := p.Give(spec.Name, files)
	spec.Mounts = append(spec.Mounts, shown...)
	return err
}

// covered lists what a container mounts beside its files.
func covered(spec *containers.Spec) (c helpers.Covered) {
	for _, m := range spec.Mounts {
		c.Mounts = append(c.Mounts, m.Target)
	}
	for _, t := range option.Each(spec.Tmpfs, option.ParseTmpfs) {
		c.Tmpfs = append(c.Tmpfs, t.Target)
	}
	if spec.Hosted != nil {
		for _, v := range spec.Hosted.Volumes {
			c.Mounts = append(c.Mounts, v.Target)
		}
	}
	return c
}
