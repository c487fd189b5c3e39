package main

import (
	"context"
	"time"

	"carma/runner/gpu"
)

// card is the GPU of the measurements. Memory is in bytes.
type card struct {
	source gpu.Source
	device gpu.Device
}

// sample reads the card once.
func (c *card) sample(ctx context.Context) (gpu.Sample, error) {
	samples, err := c.source.Sample(ctx)
	if err != nil {
		return gpu.Sample{}, err
	}
	return samples[0], nil
}

// usedBy returns the memory of one process, and the memory in use by all. own is
// 0 if the driver does not list the process.
func (c *card) usedBy(ctx context.Context, pid int) (own, all int64, err error) {
	s, err := c.sample(ctx)
	for _, p := range s.Processes {
		if p.PID == pid {
			own = int64(p.Used)
		}
	}
	return own, int64(s.Used), err
}

// activity is a mean over readings.
type activity struct {
	SMACT, SMOCC, DRAMA, PowerW float64
	Metrics                     string
	Coarse                      bool
	readings                    int
}

// sampleEvery is the time between two readings of a card's activity. GPM needs at
// least 100 ms.
const sampleEvery = 250 * time.Millisecond

// watch reads the card's activity for the time long, beginning after a delay.
// result waits for the mean. The first reading is left out, because it covers
// time before.
func (c *card) watch(ctx context.Context, after, long time.Duration) (result func() activity) {
	out := make(chan activity, 1)
	end := time.Now().Add(after + long)
	go func() {
		var sum activity
		for wait := after; ; wait = sampleEvery {
			select {
			case <-ctx.Done():
				out <- sum.mean()
				return
			case <-time.After(wait):
			}
			s, err := c.sample(ctx)
			if time.Now().After(end) {
				out <- sum.mean()
				return
			}
			if err == nil && wait == sampleEvery {
				sum.add(s)
			}
		}
	}()
	return func() activity { return <-out }
}

func (a *activity) add(s gpu.Sample) {
	a.SMACT, a.SMOCC, a.DRAMA, a.PowerW = a.SMACT+s.SMACT, a.SMOCC+s.SMOCC, a.DRAMA+s.DRAMA, a.PowerW+s.PowerW
	a.Metrics, a.Coarse = s.Metrics, a.Coarse || s.Coarse
	a.readings++
}

func (a activity) mean() activity {
	if n := float64(a.readings); n > 0 {
		a.SMACT, a.SMOCC, a.DRAMA, a.PowerW = a.SMACT/n, a.SMOCC/n, a.DRAMA/n, a.PowerW/n
	}
	return a
}
