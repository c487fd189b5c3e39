package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/request"
)

func (r *Runner) pullPolicy(asked string) string {
	if asked != "" {
		return asked
	}
	return r.live().Pull
}

// image finds the image, and fetches it if the pull policy says so. It refuses an image
// of another user; see package pull.
func (r *Runner) image(ctx context.Context, who request.Caller, s api.Submit) (containers.Image, error) {
	by := credentialsFrom(ctx)
	img, err := r.findImage(ctx, who, s, by)
	if err != nil {
		return img, err
	}
	err = r.pull.May(ctx, who.UID, s.Image, img, by)
	if denied := (*pull.DeniedError)(nil); errors.As(err, &denied) {
		return containers.Image{}, request.Errorf(403, "%v", denied)
	}
	return img, imageError(s.Image, err)
}

func (r *Runner) findImage(ctx context.Context, who request.Caller, s api.Submit, by pull.Credentials) (containers.Image, error) {
	policy := r.pullPolicy(s.Pull)
	if policy != "always" {
		if img, ok := r.images.get(s.Image); ok {
			return img, nil
		}
		img, err := r.lookUp(ctx, s.Image)
		if err == nil {
			r.images.put(s.Image, img)
		}
		if !errors.Is(err, containers.ErrNotFound) {
			return img, imageError(s.Image, err)
		}
		if policy == "never" {
			return img, request.Errorf(422, "unknown image %s: it is not on this machine, and pulling is off", s.Image)
		}
	}
	if err := r.pullNow(ctx, who, s.Image, by); err != nil {
		if errors.Is(err, containers.ErrUnavailable) {
			return containers.Image{}, err
		}
		return containers.Image{}, request.Errorf(422, "unknown image %s: it is not on this machine and cannot be pulled: %v", s.Image, err)
	}
	img, err := r.lookUp(ctx, s.Image)
	return img, imageError(s.Image, err)
}

// lookUp asks the engine for an image. If the engine has just not answered, lookUp does
// not ask it again, so that the tasks of a submission do not wait for it one after the
// other.
func (r *Runner) lookUp(ctx context.Context, ref string) (containers.Image, error) {
	if !r.engine.Answers() || r.images.engineAway() {
		return containers.Image{}, fmt.Errorf("look up image: %w", containers.ErrUnavailable)
	}
	img, err := r.Driver.Image(ctx, ref)
	if errors.Is(err, containers.ErrUnavailable) {
		r.images.noAnswer()
	}
	return img, err
}

// pullNow fetches an image while somebody waits for it. It waits for the registry without
// a time limit, but only while the engine answers. If the engine has just not answered,
// pullNow does not ask it again.
func (r *Runner) pullNow(ctx context.Context, who request.Caller, ref string, by pull.Credentials) error {
	if !r.engine.Answers() || r.images.engineAway() {
		return fmt.Errorf("pull image: %w", containers.ErrUnavailable)
	}
	ctx, end := r.engine.WhileAnswering(ctx)
	defer end()
	err := r.pull.Pull(ctx, who.UID, ref, by)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, containers.ErrUnavailable) {
		err = cause
	}
	if errors.Is(err, containers.ErrUnavailable) {
		r.images.noAnswer()
	}
	return err
}

// keepCredentials keeps the submitter's credentials for the tasks whose image could not be
// looked up.
func (r *Runner) keepCredentials(by pull.Credentials, recs []*record.Record) {
	var waiting []int64
	for _, rec := range recs {
		if rec.ImageID == "" && !rec.Submit.Bare() {
			waiting = append(waiting, int64(rec.ID()))
		}
	}
	if len(waiting) == 0 {
		return
	}
	r.pull.Keep(waiting, by, func(task int64) bool {
		rec, _ := r.records.Get(model.TaskID(task))
		return rec != nil && !rec.Task.Phase.Finished()
	})
}

func imageError(ref string, err error) error {
	if err == nil || errors.Is(err, containers.ErrUnavailable) {
		return err
	}
	return request.Errorf(422, "image %s: %v", ref, err)
}

// imageCache caches images, so that not every submission asks the engine. A retagged
// image is seen after imageCacheFor.
type imageCache struct {
	mu   sync.Mutex
	seen map[string]cachedImage
	away time.Time // the engine counts as not answering until this time
}

type cachedImage struct {
	image containers.Image
	until time.Time
}

const imageCacheFor = 2 * time.Second

func (c *imageCache) engineAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.away)
}

func (c *imageCache) noAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = time.Now().Add(imageCacheFor)
}

func (c *imageCache) get(ref string) (containers.Image, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.seen[ref]
	if !ok || time.Now().After(e.until) {
		return containers.Image{}, false
	}
	return e.image, true
}

func (c *imageCache) put(ref string, img containers.Image) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen) > 1000 {
		c.seen = map[string]cachedImage{}
	}
	c.seen[ref] = cachedImage{img, time.Now().Add(imageCacheFor)}
}
