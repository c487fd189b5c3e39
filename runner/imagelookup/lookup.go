// Package imagelookup finds the images of submitted tasks, and fetches them if the pull policy
// says so. It owns a short memory of the images that the engine has, and of an engine that has
// just not answered, so that the tasks of a submission do not ask it one after the other.
package imagelookup

import (
	"context"
	"errors"
	"fmt"

	"carma/containers"
	"carma/runner/engine"
	"carma/runner/pull"
	"carma/runner/request"
)

// Lookup finds images. Safe for concurrent use.
type Lookup struct {
	driver containers.Driver
	engine *engine.Health
	pull   *pull.Puller
	policy func() string // the default pull policy
	cache  cache
}

// New returns a lookup of the images of an engine. policy returns the default pull policy.
func New(driver containers.Driver, health *engine.Health, puller *pull.Puller, policy func() string) *Lookup {
	return &Lookup{driver: driver, engine: health, pull: puller, policy: policy}
}

// Policy returns the pull policy that a task asks for, or the default.
func (l *Lookup) Policy(asked string) string {
	if asked != "" {
		return asked
	}
	return l.policy()
}

// Find finds an image for a caller with credentials, and fetches it if the pull policy says
// so: always, never, or only if it is missing. It refuses an image of another user; see
// package pull.
func (l *Lookup) Find(ctx context.Context, uid int, ref, policy string, by pull.Credentials) (containers.Image, error) {
	img, err := l.find(ctx, uid, ref, policy, by)
	if err != nil {
		return img, err
	}
	err = l.pull.May(ctx, uid, ref, img, by)
	if denied := (*pull.DeniedError)(nil); errors.As(err, &denied) {
		return containers.Image{}, request.Errorf(403, "%v", denied)
	}
	return img, refused(ref, err)
}

func (l *Lookup) find(ctx context.Context, uid int, ref, policy string, by pull.Credentials) (containers.Image, error) {
	if policy != "always" {
		if img, ok := l.cache.get(ref); ok {
			return img, nil
		}
		img, err := l.lookUp(ctx, ref)
		if err == nil {
			l.cache.put(ref, img)
		}
		if !errors.Is(err, containers.ErrNotFound) {
			return img, refused(ref, err)
		}
		if policy == "never" {
			return img, request.Errorf(422, "unknown image %s: it is not on this machine, and pulling is off", ref)
		}
	}
	if err := l.pullNow(ctx, uid, ref, by); err != nil {
		if errors.Is(err, containers.ErrUnavailable) {
			return containers.Image{}, err
		}
		return containers.Image{}, request.Errorf(422, "unknown image %s: it is not on this machine and cannot be pulled: %v", ref, err)
	}
	img, err := l.lookUp(ctx, ref)
	return img, refused(ref, err)
}

// lookUp asks the engine for an image. If the engine has just not answered, lookUp does
// not ask it again, so that the tasks of a submission do not wait for it one after the
// other.
func (l *Lookup) lookUp(ctx context.Context, ref string) (containers.Image, error) {
	if !l.engine.Answers() || l.cache.engineFails() {
		return containers.Image{}, fmt.Errorf("look up image: %w", containers.ErrUnavailable)
	}
	img, err := l.driver.Image(ctx, ref)
	if errors.Is(err, containers.ErrUnavailable) {
		l.cache.noAnswer()
	}
	return img, err
}

// pullNow fetches an image while somebody waits for it. It waits for the registry without
// a time limit, but only while the engine answers. If the engine has just not answered,
// pullNow does not ask it again.
func (l *Lookup) pullNow(ctx context.Context, uid int, ref string, by pull.Credentials) error {
	if !l.engine.Answers() || l.cache.engineFails() {
		return fmt.Errorf("pull image: %w", containers.ErrUnavailable)
	}
	ctx, end := l.engine.WhileAnswering(ctx)
	defer end()
	err := l.pull.Pull(ctx, uid, ref, by)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, containers.ErrUnavailable) {
		err = cause
	}
	if errors.Is(err, containers.ErrUnavailable) {
		l.cache.noAnswer()
	}
	return err
}

// refused returns the answer to a submission for an error of its image.
func refused(ref string, err error) error {
	if err == nil || errors.Is(err, containers.ErrUnavailable) {
		return err
	}
	return request.Errorf(422, "image %s: %v", ref, err)
}
