package main

import (
	"context"
	"strconv"
	"time"

	"carma/runner/api"
)

// follower streams a task's output until the task has finished, across
// restarts of the daemon, without losing or repeating a line.
type follower struct {
	client   *api.Client
	task     int64
	options  api.LogOptions
	print    func(api.LogLine) error
	patience *patience

	// seen counts what has come of each source: what must be skipped of it
	// when the stream begins anew.
	seen map[source]int
	// upTo is the time of the latest line. It takes the place of the counts
	// where the stream did not begin with the first line (Tail).
	upTo time.Time
}

// source is one sequence of lines that always comes in the same order.
type source struct {
	attempt int
	stream  string
}

// run returns the finished task.
func (f *follower) run(ctx context.Context) (api.Task, error) {
	options := f.options
	for {
		skip, upTo := f.seen, f.upTo
		f.seen = map[source]int{}
		task, err := f.client.Logs(ctx, strconv.FormatInt(f.task, 10), options, func(l api.LogLine) error {
			f.patience.answered()
			s := source{l.Attempt, l.Stream}
			f.seen[s]++
			switch {
			case f.options.Tail > 0 && !upTo.IsZero() && !l.At.After(upTo):
				return nil
			case f.options.Tail == 0 && f.seen[s] <= skip[s]:
				return nil
			}
			if l.At.After(f.upTo) {
				f.upTo = l.At
			}
			return f.print(l)
		})
		if err == nil {
			f.patience.answered()
			return task, nil
		}
		for s, n := range skip { // the stream broke again before it had caught up
			f.seen[s] = max(f.seen[s], n)
		}
		if err := f.patience.retry(ctx, err); err != nil {
			return task, err
		}
		options.Tail = 0 // what was written meanwhile may be longer
	}
}
