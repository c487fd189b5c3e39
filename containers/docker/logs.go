package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/moby/moby/client"

	"carma/containers"
)

// How a log is followed.
const (
	// silence is how long a followed stream may be quiet before it is opened
	// anew: a reader of engine 20.10 that misses the change to a new log file
	// waits at the end of the old one.
	silence = 30 * time.Second
	// minTail to maxTail is how many entries at the log's end a pass looks
	// through for its place, before it reads all.
	minTail, maxTail = 1000, 256_000
)

// Logs reads the engine's json-file log: its files where they can be read from
// here (see [logFiles]), else through the API, as follows. Where the end of what
// was read before is not in the log any more, the sink is told that output is
// missing.
//
// The first pass reads all there is, which the size limits bound, and skips
// what is not after since: only so does a line that began before since and
// ended later arrive whole (see [cursor]). Later passes find their place in
// the log's tail. Passes follow only when little is left to read, because
// engine 20.10 does not notice that a new log file was begun while a follower
// still reads old ones. The last pass is made when the container has ended,
// for what was written after the last read.
func (d *Driver) Logs(ctx context.Context, id string, since time.Time, follow bool, sink containers.LogSink) error {
	what := "read logs of container " + short(id)
	if c, _, err := d.inspect(ctx, what, id); err == nil && state(c.State.Status) != containers.StateCreated {
		if files := d.logFilesOf(&c); files != nil {
			defer files.close()
			return d.readFiles(ctx, id, files, since, follow, sink)
		}
	}
	cur := newCursor(since, sink)
	tail, near, pause := minTail, false, time.Duration(0)
	for {
		c, cli, err := d.inspect(ctx, what, id)
		if err != nil {
			return err
		}
		if state(c.State.Status) == containers.StateCreated {
			return nil
		}
		over := ended(c.State) // looked up before reading: then the log is complete
		live, before := follow && !over && near, cur.taken
		err = d.pass(ctx, cli, id, live, tail, cur)
		fresh := cur.taken - before
		near = !live && err == nil && fresh <= minTail/2
		switch {
		case errors.Is(err, errLost):
			if tail == maxTail {
				cur.rewind()
			}
			tail = min(16*tail, maxTail)
			continue
		case errors.Is(err, errWentBack), errors.Is(err, errSilent):
		case err != nil:
			return d.fail(ctx, cli, what, err)
		case over:
			cur.finish()
			return nil
		case !follow:
			return nil
		}
		tail = max(minTail, min(4*fresh, maxTail))
		if err != nil || !live || fresh > 0 {
			pause = 0
			continue
		}
		// The stream ends although the container runs.
		pause = min(2*pause+20*time.Millisecond, 2*time.Second)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// pass streams the log once through cur: its tail if cur can find its place
// there, else all of it. It ends without error at the end of the log, or of
// the container if it follows.
func (d *Driver) pass(ctx context.Context, cli *client.Client, id string, follow bool, tail int, cur *cursor) error {
	opts := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: follow}
	if cur.placed() {
		opts.Tail = strconv.Itoa(tail)
		cur.seek()
	} else {
		cur.rewind()
	}
	outer := ctx
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	body, err := cli.ContainerLogs(ctx, id, opts)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if follow {
		quiet := time.AfterFunc(silence, cancel)
		defer quiet.Stop()
		body = &resetting{body, quiet}
	}
	err = read(body, cur, follow, tail)
	switch {
	case ctx.Err() != nil && outer.Err() == nil:
		return errSilent
	case err == nil && cur.seeking:
		return errLost
	}
	return err
}

// read feeds a stream's entries to cur until it ends.
func read(body io.Reader, cur *cursor, live bool, tail int) error {
	r := bufio.NewReaderSize(body, 64<<10)
	var f frame
	for {
		switch err := f.read(r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case f.stream == systemError:
			return fmt.Errorf("the engine's log: %s", f.data)
		}
		if err := cur.entry(&f, live); err != nil {
			return err
		}
		if cur.seeking && cur.sought >= tail {
			return errLost
		}
	}
}

// resetting puts a timer off at each read.
type resetting struct {
	io.ReadCloser
	timer *time.Timer
}

func (r *resetting) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.timer.Reset(silence)
	return n, err
}
