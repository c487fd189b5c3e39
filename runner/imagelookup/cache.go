package imagelookup

import (
	"sync"
	"time"

	"carma/containers"
)

// cache keeps images, so that not every submission asks the engine. A retagged
// image is seen after lifetime.
type cache struct {
	mu      sync.Mutex
	seen    map[string]cachedImage
	failing time.Time // the engine counts as not answering until this time
}

type cachedImage struct {
	image containers.Image
	until time.Time
}

const lifetime = 2 * time.Second

func (c *cache) engineFails() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.failing)
}

func (c *cache) noAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = time.Now().Add(lifetime)
}

func (c *cache) get(ref string) (containers.Image, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.seen[ref]
	if !ok || time.Now().After(e.until) {
		return containers.Image{}, false
	}
	return e.image, true
}

func (c *cache) put(ref string, img containers.Image) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen) > 1000 {
		c.seen = map[string]cachedImage{}
	}
	c.seen[ref] = cachedImage{img, time.Now().Add(lifetime)}
}
