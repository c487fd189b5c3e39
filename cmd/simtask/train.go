package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"carma/runner/gpu/simgpu/client"
)

// trainer simulates a job. It sleeps until something is due: the next event of the plan,
// the next line of output, a change of speed, or a signal.
type trainer struct {
	job
	client   *client.Client
	out, err io.Writer
	leaver   *leaver // nil if it is never asked to vacate
	training bool    // its GPUs are busy

	trained float64       // seconds of training done
	clock   float64       // simulated seconds since the start
	passed  client.Passed // at the time of those two
	at      time.Time     // the same on the wall clock
	pace    client.Pace

	printed     time.Time // the last line of progress
	printedStep int
	bar         shown
	learned     int // number of steps included in weight
	weight      float64
}

const (
	lineGap   = 500 * time.Millisecond // least time between lines
	lineShare = 0.01                   // least share of the run between lines
)

func (t *trainer) run(ctx context.Context) int {
	t.header()
	t.at, t.passed, t.pace = time.Now(), t.client.Passed(), t.client.Pace()
	for _, e := range t.plan() {
		if code := t.reach(ctx, e.at); code != exitOK {
			return code
		}
		switch e.action {
		case alloc:
			if code := t.alloc(ctx, e); code != exitOK {
				return code
			}
		case train:
			t.training = true
			t.client.SetLoads(t.loads)
			t.progress()
		case hang:
			t.training = false
			t.client.SetLoads(nil)
			t.endBar()
			fmt.Fprintln(t.out, "waiting for the next batch")
			return t.hangs(ctx)
		case fail:
			t.trained = min(t.trained, e.at) // the program stops at its bug, even if the timer is late
			t.progress()
			t.endBar()
			t.valueError()
			return exitFailed
		case end:
			t.progress()
			t.endBar()
			if t.form == "steps" {
				fmt.Fprintf(t.out, "trained %d epochs\n", t.epochs)
			} else {
				fmt.Fprintf(t.out, "trained %d epochs in %s\n", t.epochs, seconds(t.clock))
			}
			return exitOK
		}
	}
	return exitOK // the plan has an end
}

// hangs does nothing until it is stopped.
func (t *trainer) hangs(ctx context.Context) int {
	for {
		select {
		case o := <-t.asked():
			if code := t.obey(ctx, o); code != exitOK {
				return code
			}
		case <-ctx.Done():
			return t.stop(ctx)
		}
	}
}

// reach trains until a point of the run.
func (t *trainer) reach(ctx context.Context, point float64) int {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		t.advance()
		if t.trained >= point {
			return exitOK
		}
		line := t.nextLine()
		if !time.Now().Before(line) {
			t.progress()
			continue
		}
		timer.Reset(min(t.wait(point), time.Until(line)))
		select {
		case <-timer.C:
		case <-t.client.Changed():
			t.pace = t.client.Pace()
		case o := <-t.asked():
			if code := t.obey(ctx, o); code != exitOK {
				return code
			}
		case <-ctx.Done():
			t.advance()
			return t.stop(ctx)
		}
	}
}

// advance counts the training up to now.
func (t *trainer) advance() {
	t.trained = min(t.seconds, t.trained+t.pass().Training)
}

// pass returns the time since the last call. The client counts it, because it knows the
// exact times of suspensions.
func (t *trainer) pass() client.Passed {
	before, now := t.passed, t.client.Passed()
	t.passed, t.at = now, time.Now()
	t.clock += now.Clock - before.Clock
	return client.Passed{Training: now.Training - before.Training, Clock: now.Clock - before.Clock}
}

// wait returns the wall-clock time to a point of the run at the present speed.
func (t *trainer) wait(point float64) time.Duration {
	s := (point - t.trained) / t.pace.Training
	if !(s < 3600) {
		return time.Hour // it will be called again
	}
	return time.Duration(math.Ceil(s * float64(time.Second)))
}

// nextLine returns the time at which the next line of progress is due at the present
// speed.
func (t *trainer) nextLine() time.Time {
	if t.printed.IsZero() { // the first line comes when training begins
		return t.at.Add(time.Hour)
	}
	share := float64(t.printedStep)/float64(t.steps*t.epochs) + lineShare
	due := t.at.Add(t.wait(share * t.seconds))
	if soonest := t.printed.Add(lineGap); due.Before(soonest) {
		return soonest
	}
	return due
}

// alloc allocates memory. While there is no server it waits, without training.
func (t *trainer) alloc(ctx context.Context, e event) int {
	err := t.client.Alloc(ctx, e.gpu, e.bytes)
	t.pass()
	var oom *client.OOMError
	switch {
	case errors.As(err, &oom):
		t.endBar()
		t.outOfMemory(oom)
		return exitFailed
	case err != nil:
		return t.stop(ctx)
	}
	return exitOK
}

// stop ends the program after a signal and returns its exit code.
func (t *trainer) stop(ctx context.Context) int {
	code, ok := stopCode(ctx)
	if !ok {
		return exitFailed
	}
	t.endBar()
	epoch, step := t.position()
	fmt.Fprintf(t.out, "%v in epoch %d, step %d: stopping\n", context.Cause(ctx), epoch, step)
	return code
}
