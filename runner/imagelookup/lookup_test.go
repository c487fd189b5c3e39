package imagelookup

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
)

// TestCache: an image is kept for a short time, and so is that the engine has not answered.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cache
		c.put("a", containers.Image{ID: "1"})
		c.noAnswer()
		time.Sleep(lifetime - 1)
		if img, ok := c.get("a"); !ok || img.ID != "1" || !c.engineFails() {
			t.Errorf("%+v, %t, %t", img, ok, c.engineFails())
		}
		time.Sleep(2 * time.Nanosecond)
		if _, ok := c.get("a"); ok || c.engineFails() {
			t.Error("it is kept for too long")
		}
		if _, ok := c.get("b"); ok {
			t.Error("an unknown image is kept")
		}
	})
}

// TestRefused: an engine that does not answer is no fault of the image.
func TestRefused(t *testing.T) {
	if err := refused("a", containers.ErrUnavailable); err != containers.ErrUnavailable || refused("a", nil) != nil {
		t.Error(err)
	}
	if err := refused("a", errors.New("bad")); err == nil || err.Error() != "image a: bad" {
		t.Error(err)
	}
}
