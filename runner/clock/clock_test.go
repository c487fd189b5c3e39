package clock

import (
	"encoding/json"
	"testing"
	"time"

	"carma/internal/units"
)

// manual returns a clock whose wall clock is the returned variable.
func manual(speed float64) (*Clock, *time.Time) {
	wall := time.Unix(1_700_000_000, 0)
	return NewFrom(func() time.Time { return wall }, speed), &wall
}

// TestSpeed checks that a change of speed affects only the time after it, and that durations
// are converted in both directions.
func TestSpeed(t *testing.T) {
	c, wall := manual(1)
	began := c.Now()
	pass := func(d, want time.Duration) {
		t.Helper()
		before := c.Now()
		*wall = wall.Add(d)
		if got := c.Now().Sub(before); got != want {
			t.Errorf("%s passed in %s, want %s", got, d, want)
		}
	}
	pass(time.Minute, time.Minute)
	c.SetSpeed(60)
	pass(time.Second, time.Minute)
	if got := c.Until(began.Add(3 * time.Minute)); got != time.Second {
		t.Errorf("the wall-clock time until a minute later is %s", got)
	}
	if got := c.Until(began); got != 0 {
		t.Errorf("until an instant that has passed: %s", got)
	}
	if got := c.Wall(time.Hour); got != time.Minute {
		t.Errorf("an hour takes %s", got)
	}
	if got := c.FromWall(wall.Add(time.Second)).Sub(c.Now()); got != time.Minute {
		t.Errorf("a second later by the wall clock is %s later", got)
	}
	if got := c.Ahead(); got != 59*time.Second {
		t.Errorf("it is %s ahead", got)
	}
	if by := c.SetTo(began); by != -2*time.Minute || c.Now() != began {
		t.Errorf("set to the beginning: changed by %s, and it is %s", by, c.Now().Time())
	}
}

// TestContinue checks that a clock that is read from the journal has continued while no daemon
// ran.
func TestContinue(t *testing.T) {
	c, wall := manual(10)
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	*wall = wall.Add(time.Minute)
	next := NewFrom(func() time.Time { return *wall }, 1)
	if err := json.Unmarshal(body, next); err != nil {
		t.Fatal(err)
	}
	if next.Now() != c.Now() || next.Speed() != 10 {
		t.Errorf("it is %s at speed %v, want %s", next.Now().Time(), next.Speed(), c.Now().Time())
	}
	if err := next.UnmarshalJSON([]byte(`{"wall":1,"sim":1,"speed":0}`)); err == nil || next.Speed() != 10 {
		t.Errorf("a clock that stands was read: %v", err)
	}
}

// TestRestore checks the daemon's time after a start, for each difference between the wall
// clock and the uptime.
func TestRestore(t *testing.T) {
	const boot = "one"
	for _, row := range []struct {
		name         string
		wall, passed time.Duration // since the last start, by the wall clock and the kernel
		boot         string
		known        bool
		last         time.Duration // the journal's last instant, counted from the last start
		want         time.Duration
		warns        bool
	}{
		{"nothing was set", time.Hour, time.Hour, boot, true, time.Minute, time.Hour, false},
		{"a drift", time.Hour + Slack, time.Hour, boot, true, time.Minute, time.Hour + Slack, false},
		{"set forward", 2 * time.Hour, time.Hour, boot, true, time.Minute, time.Hour, true},
		{"set forward, booted", 2 * time.Hour, time.Hour, "two", true, time.Minute, 2 * time.Hour, false},
		{"set forward, the boot is unknown", 2 * time.Hour, time.Hour, "", true, time.Minute, 2 * time.Hour, false},
		{"set forward, no task could end", 2 * time.Hour, time.Hour, boot, false, time.Minute, 2 * time.Hour, false},
		{"set back a little", -time.Second, 0, boot, true, 0, 0, false},
		{"set back", -time.Hour, time.Minute, boot, true, time.Minute, time.Minute, true},
	} {
		c, wall := manual(1)
		began := units.InstantOf(*wall)
		*wall = wall.Add(row.wall)
		before := &Start{Uptime{boot, time.Hour}, began}
		if !row.known {
			before = nil
		}
		up := Uptime{row.boot, time.Hour + row.passed}
		s, warning, lag := c.Restore(before, up, began.Add(row.last))
		if got := c.Now().Sub(began); got != row.want || s.At != c.Now() || s.Uptime != up {
			t.Errorf("%s: %s have passed, want %s; %+v", row.name, got, row.want, s)
		}
		if (warning != "") != row.warns || lag != row.wall-row.want {
			t.Errorf("%s: it is %s behind: %q", row.name, lag, warning)
		}
	}
}

// TestUptime checks that the kernel's uptime grows, and that the stored form of a start can be
// read back.
func TestUptime(t *testing.T) {
	up := ReadUptime()
	if up.Boot == "" || up.Since <= 0 || ReadUptime().Since < up.Since {
		t.Errorf("%+v", up)
	}
	body, err := json.Marshal(Start{Uptime{"b", 2}, 3})
	if err != nil || string(body) != `{"boot":"b","since":2,"at":3}` {
		t.Errorf("%s, %v", body, err)
	}
}
