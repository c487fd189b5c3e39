package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"carma/containers"
	"carma/containers/containerd/logfile"
)

// lastLines is the time that Logs waits for the last output of an ended container. That
// output may still be in the logger's pipe, which ends when the task is deleted.
const lastLines = 10 * time.Second

// Logs reads the logger's files of the container.
func (d *Driver) Logs(ctx context.Context, id string, since time.Time, follow bool, sink containers.LogSink) error {
	what := "read logs of container " + id
	r, err := d.look(ctx, id)
	if err != nil {
		return d.fail(ctx, what, err)
	}
	if r.state() == containers.StateCreated {
		return nil
	}
	dir := r.Labels[labelDir]
	log := logfile.NewReader(dir, since)
	defer log.Close()

	watch, end := context.WithCancel(ctx)
	ended := make(chan error, 1) // receives a value when the container has ended
	defer func() { end(); <-ended }()
	if follow || r.state() == containers.StateExited {
		go func() { _, err := d.Wait(watch, id); ended <- err; close(ended) }()
	} else {
		close(ended)
	}
	var patience <-chan time.Time
	var result error
	for pause := time.Duration(0); ; {
		over, err := logfile.Ended(dir) // checked before reading: if the writer has ended by now, this reading is complete
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		n, err := pass(ctx, log, sink)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if over {
			return cmp.Or(<-ended, result)
		}
		pause = min(2*pause+5*time.Millisecond, 100*time.Millisecond)
		if n > 0 {
			pause = 5 * time.Millisecond
		}
		wait := ended
		if patience != nil {
			wait = nil
		}
		select {
		case result = <-wait:
			if result != nil || !follow && r.state() == containers.StateRunning {
				return result
			}
			patience = time.After(lastLines)
		case <-patience:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// pass sends the next stored entries to sink and returns their number n.
func pass(ctx context.Context, log *logfile.Reader, sink containers.LogSink) (n int, err error) {
	for ctx.Err() == nil {
		e, err := log.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		sink(e.At, containers.Stream(e.Stream), e.Text, e.Partial)
		n++
	}
	return n, ctx.Err()
}
