//go:build failpoints

package runner

import (
	"context"
	"time"

	"carma/containers"
	"carma/internal/failpoint"
)

// failing puts a failpoint before and after each call of an engine.
func failing(d containers.Driver) containers.Driver {
	if h, ok := d.(containers.Parker); ok {
		return failingParker{failingDriver{d}, h}
	}
	return failingDriver{d}
}

type failingDriver struct{ containers.Driver }

func (d failingDriver) Unwrap() containers.Driver { return d.Driver }

func (d failingDriver) Pull(ctx context.Context, ref string, by containers.Credential) error {
	if err := failpoint.Error("engine-before-pull"); err != nil {
		return err
	}
	err := d.Driver.Pull(ctx, ref, by)
	failpoint.Hit("engine-after-pull")
	return err
}

func (d failingDriver) Create(ctx context.Context, spec containers.Spec) (string, error) {
	if err := failpoint.Error("engine-before-create"); err != nil {
		return "", err
	}
	id, err := d.Driver.Create(ctx, spec)
	failpoint.Hit("engine-after-create")
	return id, err
}

func (d failingDriver) Start(ctx context.Context, id string) error {
	if err := failpoint.Error("engine-before-start"); err != nil {
		return err
	}
	err := d.Driver.Start(ctx, id)
	failpoint.Hit("engine-after-start")
	return err
}

func (d failingDriver) Wait(ctx context.Context, id string) (containers.Exit, error) {
	if err := failpoint.Error("engine-before-wait"); err != nil {
		return containers.Exit{}, err
	}
	exit, err := d.Driver.Wait(ctx, id)
	failpoint.Hit("engine-after-wait")
	return exit, err
}

func (d failingDriver) Logs(ctx context.Context, id string, since time.Time, follow bool, sink containers.LogSink) error {
	if err := failpoint.Error("engine-before-logs"); err != nil {
		return err
	}
	err := d.Driver.Logs(ctx, id, since, follow, sink)
	failpoint.Hit("engine-after-logs")
	return err
}

func (d failingDriver) Signal(ctx context.Context, id string) error {
	if err := failpoint.Error("engine-before-signal"); err != nil {
		return err
	}
	err := d.Driver.Signal(ctx, id)
	failpoint.Hit("engine-after-signal")
	return err
}

func (d failingDriver) Kill(ctx context.Context, id string) error {
	if err := failpoint.Error("engine-before-kill"); err != nil {
		return err
	}
	err := d.Driver.Kill(ctx, id)
	failpoint.Hit("engine-after-kill")
	return err
}

func (d failingDriver) Remove(ctx context.Context, id string) error {
	if err := failpoint.Error("engine-before-remove"); err != nil {
		return err
	}
	err := d.Driver.Remove(ctx, id)
	failpoint.Hit("engine-after-remove")
	return err
}

func (d failingDriver) Attached(ctx context.Context, id string) (containers.Attachment, error) {
	if err := failpoint.Error("engine-before-attached"); err != nil {
		return containers.Attachment{}, err
	}
	a, err := d.Driver.Attached(ctx, id)
	failpoint.Hit("engine-after-attached")
	return a, err
}

func (d failingDriver) List(ctx context.Context, labels map[string]string) ([]containers.Container, error) {
	if err := failpoint.Error("engine-before-list"); err != nil {
		return nil, err
	}
	list, err := d.Driver.List(ctx, labels)
	failpoint.Hit("engine-after-list")
	return list, err
}

// failingParker is a driver that can park containers.
type failingParker struct {
	failingDriver
	parker containers.Parker
}

func (h failingParker) CanPark() error { return h.parker.CanPark() }

func (h failingParker) Park(ctx context.Context, id string) (int, error) {
	return h.parker.Park(ctx, id)
}

func (h failingParker) BeforeGone(call func(context.Context, string)) bool {
	return h.parker.BeforeGone(call)
}
