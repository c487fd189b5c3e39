package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"carma/containers"
	"carma/runner/api"
)

func (r *Runner) pullPolicy(asked string) string {
	if asked != "" {
		return asked
	}
	return r.opt.Pull
}

// image finds the image, fetching it if the pull policy says so.
func (r *Runner) image(ctx context.Context, s api.Submit) (containers.Image, error) {
	policy := r.pullPolicy(s.Pull)
	if policy != "always" {
		if img, ok := r.images.get(s.Image); ok {
			return img, nil
		}
		img, err := r.Driver.Image(ctx, s.Image)
		if err == nil {
			r.images.put(s.Image, img)
		}
		if !errors.Is(err, containers.ErrNotFound) {
			return img, imageError(s.Image, err)
		}
		if policy == "never" {
			return img, refusef(422, "unknown image %s: it is not on this machine, and pulling is off", s.Image)
		}
	}
	if err := r.Driver.Pull(ctx, s.Image); err != nil {
		if errors.Is(err, containers.ErrUnavailable) {
			return containers.Image{}, err
		}
		return containers.Image{}, refusef(422, "unknown image %s: it is not on this machine and cannot be pulled: %v", s.Image, err)
	}
	img, err := r.Driver.Image(ctx, s.Image)
	return img, imageError(s.Image, err)
}

func imageError(ref string, err error) error {
	if err == nil || errors.Is(err, containers.ErrUnavailable) {
		return err
	}
	return refusef(422, "image %s: %v", ref, err)
}

// imageCache spares the engine a question per submission. An image that is
// retagged is seen after a moment.
type imageCache struct {
	mu   sync.Mutex
	seen map[string]cachedImage
}

type cachedImage struct {
	image containers.Image
	until time.Time
}

const imageCacheFor = 2 * time.Second

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
