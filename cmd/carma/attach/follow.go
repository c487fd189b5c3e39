package attach

import (
	"context"
	"strconv"
	"time"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// Follower streams a task's output until the task has finished, across restarts of the
// daemon, without loss or repetition of a line.
type Follower struct {
	Client   *api.Client
	Task     int64
	Options  api.LogOptions
	Print    func(api.LogLine) error
	Patience *cli.Patience

	// seen counts the lines from each source. When the stream begins again, that many
	// lines are skipped.
	seen map[source]int
	// upTo is the time of the latest line. It replaces the counts if the stream did not
	// begin with the first line (Tail).
	upTo time.Time
}

// source is one sequence of lines that always comes in the same order.
type source struct {
	attempt int
	stream  string
}

// Run returns the finished task.
func (f *Follower) Run(ctx context.Context) (api.Task, error) {
	options := f.Options
	for {
		skip, upTo := f.seen, f.upTo
		f.seen = map[source]int{}
		task, err := f.Client.Logs(ctx, strconv.FormatInt(f.Task, 10), options, func(l api.LogLine) error {
			f.Patience.Answered()
			s := source{l.Attempt, l.Stream}
			f.seen[s]++
			switch {
			case f.Options.Tail > 0 && !upTo.IsZero() && !l.At.After(upTo):
				return nil
			case f.Options.Tail == 0 && f.seen[s] <= skip[s]:
				return nil
			}
			if l.At.After(f.upTo) {
				f.upTo = l.At
			}
			return f.Print(l)
		})
		if err == nil {
			f.Patience.Answered()
			return task, nil
		}
		for s, n := range skip { // the stream broke again before it had caught up
			f.seen[s] = max(f.seen[s], n)
		}
		if err := f.Patience.Retry(ctx, err); err != nil {
			return task, err
		}
		options.Tail = 0 // the output since then may be longer
	}
}
