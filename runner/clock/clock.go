package clock

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"carma/internal/units"
)

// Clock is the daemon's clock. With real GPUs it shows wall-clock time. On a simulated server
// it may run faster, and it continues while the daemon is down, because the containers continue
// too. Safe for concurrent use.
//
// While the daemon runs, its time follows the monotonic clock, so that it passes evenly even if
// somebody sets the wall clock.
type Clock struct {
	now   func() time.Time // the wall clock, with the system's monotonic reading
	mu    sync.Mutex
	wall  time.Time
	sim   units.Instant
	speed float64
}

// New returns a clock that shows the present and runs at the given speed, the ratio of
// the daemon's time to wall-clock time.
func New(speed float64) *Clock { return NewFrom(time.Now, speed) }

// NewFrom does the same with a wall clock that is not the system's.
func NewFrom(now func() time.Time, speed float64) *Clock {
	wall := now()
	return &Clock{now: now, wall: wall, sim: units.InstantOf(wall), speed: speed}
}

// Now returns the daemon's time.
func (c *Clock) Now() units.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(c.now())
}

func (c *Clock) at(wall time.Time) units.Instant {
	return c.sim.Add(time.Duration(float64(wall.Sub(c.wall)) * c.speed))
}

// Time returns Now as a time.Time.
func (c *Clock) Time() time.Time { return c.Now().Time() }

// Until returns the wall-clock time left until an instant, or 0 if it has passed.
func (c *Clock) Until(t units.Instant) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Duration(float64(t.Sub(c.at(c.now())))/c.speed))
}

// Wall converts a duration of the daemon's time to the wall clock's.
func (c *Clock) Wall(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.Speed())
}

// FromWall converts a moment of the wall clock to the daemon's time.
func (c *Clock) FromWall(t time.Time) units.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(t)
}

// Speed returns the ratio of the daemon's time to wall-clock time.
func (c *Clock) Speed() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.speed
}

// SetSpeed changes the speed; earlier time is not affected.
func (c *Clock) SetSpeed(speed float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.wall, c.sim, c.speed = now, c.at(now), speed
}

// SetTo sets the daemon's time to t. It returns the change.
func (c *Clock) SetTo(t units.Instant) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	by := t.Sub(c.at(now))
	c.wall, c.sim = now, t
	return by
}

// Ahead returns the lead of the daemon's time over the wall clock.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return c.at(now).Sub(units.InstantOf(now))
}

type anchor struct {
	Wall  int64         `json:"wall"` // nanoseconds since the Unix epoch
	Sim   units.Instant `json:"sim"`
	Speed float64       `json:"speed"`
}

// MarshalJSON writes the clock so that a later daemon can continue it.
func (c *Clock) MarshalJSON() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return json.Marshal(anchor{c.wall.UnixNano(), c.sim, c.speed})
}

// UnmarshalJSON continues a clock that MarshalJSON wrote.
func (c *Clock) UnmarshalJSON(b []byte) error {
	var a anchor
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	if !(a.Speed > 0) {
		return fmt.Errorf("clock has speed %v", a.Speed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.sim, c.speed = time.Unix(0, a.Wall), a.Sim, a.Speed
	return nil
}
