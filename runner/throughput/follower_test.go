package throughput

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/runner/clock"
)

// TestFollows checks that the time of a line follows the daemon's time, even if the wall clock
// is set.
func TestFollows(t *testing.T) {
	hour := units.Instant(time.Hour)
	for _, row := range []struct {
		name                  string
		before, at, now, want units.Instant
	}{
		{"as it comes", hour, hour.Add(time.Second), hour.Add(2 * time.Second), hour.Add(time.Second)},
		{"the clock was set forward", hour, 3 * hour, hour.Add(time.Second), hour.Add(time.Second)},
		{"the clock was set back", 2 * hour, hour, 2 * hour.Add(time.Second), 2 * hour.Add(time.Second)},
		{"another stream was faster", hour, hour.Add(-time.Millisecond), hour.Add(time.Second), hour},
	} {
		if got := follows(row.before, row.at, row.now); got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// trains feeds the lines of a training of 1000 steps, one line per the given number of seconds.
func (f *Follower) trains(at *time.Time, from, to int, seconds float64) {
	for step := from; step < to; step++ {
		*at = at.Add(time.Duration(seconds * float64(time.Second)))
		f.Read(*at, containers.Stdout, fmt.Appendf(nil, "step %d/1000", step), false)
	}
}

// TestPace checks which throughput of a task is reported, and when. Its neighbours change at 0
// and 20 minutes; a step takes 5 s, and then 10.
func TestPace(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	const settles = time.Minute
	at := start
	clock := clock.NewFrom(func() time.Time { return at }, 1)
	came := units.InstantOf(start).Add(settles)
	f := newFollower(clock)
	var beside []model.TaskID
	tell := func() (model.Throughput, bool) {
		p, told, ok := f.pace(units.InstantOf(at), predict.SpeedView{Changed: came.Add(-settles), Since: came, Beside: beside})
		if ok {
			f.tell(told)
		}
		return p, ok
	}
	f.trains(&at, 0, 12, 5)
	if p, ok := tell(); ok {
		t.Errorf("while it settles: %+v", p)
	}
	f.trains(&at, 12, 24, 5)
	p, ok := tell()
	if !ok || p.Rate != 0.2 || p.Share != 0.023 || !p.Steps || p.Unit != "steps" || p.Since != came {
		t.Errorf("the first: %+v, %v", p, ok)
	}
	first := units.InstantOf(at)
	f.trains(&at, 24, 70, 5)
	if p, ok := tell(); ok {
		t.Errorf("nothing is new: %+v", p)
	}
	f.trains(&at, 70, 80, 5)
	if p, ok = tell(); !ok || p.Since != first || p.Share != 0.079 {
		t.Errorf("a twentieth further, since %v: %+v, %v", first, p, ok)
	}
	// A new neighbour.
	came, beside = units.InstantOf(at).Add(settles), []model.TaskID{2}
	f.trains(&at, 80, 86, 10)
	if p, ok := tell(); ok {
		t.Errorf("beside a neighbour, too soon: %+v", p)
	}
	f.trains(&at, 86, 96, 10)
	if p, ok = tell(); !ok || p.Rate != 0.1 || p.Alone != 0.2 || p.Since != came {
		t.Errorf("beside a neighbour: %+v, %v", p, ok)
	}
	// It slows down without a change of neighbours, but within a minute.
	f.trains(&at, 96, 98, 20)
	if p, ok := tell(); ok {
		t.Errorf("again within a minute: %+v", p)
	}
	f.trains(&at, 98, 108, 20)
	if p, ok = tell(); !ok || p.Rate > 0.06 {
		t.Errorf("slower: %+v, %v", p, ok)
	}
}

// TestPaceUnit checks that the rate of another counter has another unit, and that irregular
// lines give no rate.
func TestPaceUnit(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := start
	clock := clock.NewFrom(func() time.Time { return at }, 1)
	f := newFollower(clock)
	for epoch := 1; epoch < 10; epoch++ {
		at = at.Add(time.Minute)
		f.Read(at, containers.Stdout, fmt.Appendf(nil, "Epoch %d/10", epoch), false)
	}
	p, _, ok := f.pace(units.InstantOf(at), predict.SpeedView{Since: units.InstantOf(start)})
	if !ok || p.Unit != "epochs" || p.Steps {
		t.Errorf("%+v, %v", p, ok)
	}
	f.trains(&at, 0, 100, 2)
	if p, _, ok = f.pace(units.InstantOf(at), predict.SpeedView{Since: units.InstantOf(start)}); !ok || p.Unit == "epochs" || p.Unit == "" || !p.Steps {
		t.Errorf("by steps: %+v, %v", p, ok)
	}
	wild := newFollower(clock)
	for i, seconds := range []float64{1, 200, 2, 300, 5, 100, 1, 250} {
		wild.trains(&at, i, i+1, seconds)
	}
	if p, _, ok := wild.pace(units.InstantOf(at), predict.SpeedView{Since: units.InstantOf(start)}); ok {
		t.Errorf("irregular: %+v", p)
	}
}

// TestSuspendedIsNoPause checks that no time passes for an attempt's progress while it is
// suspended, so that speed and remaining time do not change. Without the suspension, the same
// output gives a later end.
func TestSuspendedIsNoPause(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	left := func(tell bool) (time.Duration, float64, time.Time, time.Time) {
		at := start
		clock := clock.NewFrom(func() time.Time { return at }, 1)
		f := newFollower(clock)
		f.trains(&at, 0, 50, 10)
		if tell {
			f.Suspend(units.InstantOf(at))
		}
		at = at.Add(3 * time.Hour)
		if tell {
			f.Resume(units.InstantOf(at))
		}
		f.trains(&at, 50, 60, 10)
		p, _, ok := f.Progress(units.InstantOf(at))
		if !ok || !p.Trusted {
			t.Fatalf("%+v, %v", p, ok)
		}
		return p.Remaining, p.Rate, p.Seen, at
	}
	with, rate, seen, end := left(true)
	if want := 9400 * time.Second; with < want-100*time.Second || with > want+100*time.Second || rate < 0.095 || rate > 0.105 || end.Sub(seen) > time.Second || end.Before(seen) {
		t.Errorf("%s left at %v a second, seen %s before now; want %s", with, rate, end.Sub(seen), want)
	}
	if without, _, _, _ := left(false); without < 2*with {
		t.Errorf("this tells nothing: without it %s are left, with it %s", without, with)
	}
}

// TestLived: each instant counts only the unsuspended time before it.
func TestLived(t *testing.T) {
	var none *Follower
	none.Suspend(1)
	none.Resume(2)
	f := newFollower(clock.New(1))
	f.Resume(5)
	f.Suspend(100)
	f.Suspend(110)
	f.Resume(200)
	f.Suspend(300)
	for at, want := range map[units.Instant]units.Instant{50: 50, 100: 100, 150: 100, 200: 100, 250: 150, 300: 200, 400: 200} {
		if got := f.lived(at); !got.Equal(want.Time()) {
			t.Errorf("%d is %s, want %s", at, got, want.Time())
		}
	}
	if got := f.passed(units.Instant(150).Time()); !got.Equal(units.Instant(250).Time()) {
		t.Errorf("150 was at %s", got)
	}
}

// TestAloneTime checks that the part of the time alone after settling counts, or all of it if
// that part is too short, up to the start of the first neighbour.
func TestAloneTime(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := start
	clock := clock.NewFrom(func() time.Time { return at }, 1)
	began, one := units.InstantOf(start), []model.TaskID{2}
	f := newFollower(clock)
	look := func(changed units.Instant, beside []model.TaskID) (float64, float64) {
		f.alone.follow(units.InstantOf(at), predict.SpeedView{Changed: changed, Since: changed.Add(time.Minute), Beside: beside})
		return f.aloneSpeed()
	}
	f.trains(&at, 0, 5, 20)
	if rate, _ := look(began, nil); rate != 0.05 {
		t.Errorf("at once: %v", rate)
	}
	f.trains(&at, 5, 7, 20)
	came := units.InstantOf(at)
	f.trains(&at, 7, 17, 40)
	if rate, err := look(came, one); rate != 0.05 || err > rateErrorMost || f.alone.until != came {
		t.Errorf("after somebody came: %v, %v, %v", rate, err, f.alone)
	}
	f.trains(&at, 17, 27, 100)
	if rate, _ := look(units.InstantOf(at), []model.TaskID{2, 3}); rate != 0.05 {
		t.Errorf("after another came: %v", rate)
	}
	if rate, _ := newFollower(clock).aloneSpeed(); rate != 0 {
		t.Errorf("never alone: %v", rate)
	}
}

// TestFollowFlood checks that most lines of a flood of output are skipped, and that later
// output is read from the beginning of a line.
func TestFollowFlood(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	clock := clock.NewFrom(func() time.Time { return at }, 1)
	f := newFollower(clock)
	for range 3 * floodBurst {
		at = at.Add(time.Microsecond)
		f.Read(at, containers.Stdout, []byte("step 9"), true)
	}
	if f.left >= 1 || !f.torn {
		t.Fatalf("%v lines are left after a flood", f.left)
	}
	for _, line := range []string{"step 3/1000", "step 4/1000", "step 5/1000"} {
		at = at.Add(time.Minute)
		f.Read(at, containers.Stdout, []byte(line), false)
	}
	if p, _, ok := f.Progress(units.InstantOf(at)); !ok || p.Done != 5 || f.left < 1 {
		t.Errorf("after the flood: %+v, %v", p, ok)
	}
}

// BenchmarkFollow measures a flood of one million 100-byte lines per second.
func BenchmarkFollow(b *testing.B) {
	f, at := newFollower(clock.New(1)), time.Now()
	line := []byte(strings.Repeat("nothing of interest ", 5))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		at = at.Add(time.Microsecond)
		f.Read(at, containers.Stdout, line, false)
	}
}

// BenchmarkPace measures one check of a task's throughput.
func BenchmarkPace(b *testing.B) {
	at := time.Unix(1_700_000_000, 0)
	clock := clock.NewFrom(func() time.Time { return at }, 1)
	f, began := newFollower(clock), units.InstantOf(at)
	f.trains(&at, 0, 1000, 1)
	for b.Loop() {
		f.pace(units.InstantOf(at), predict.SpeedView{Changed: began, Since: began})
	}
}
