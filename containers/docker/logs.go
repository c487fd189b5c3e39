package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"carma/containers"
)

// Settings of following a log.
const (
	// silence is the time without output after which a followed stream is reopened. A reader
	// of engine 20.10 that misses the change to a new log file waits at the end of the old
	// one.
	silence = 30 * time.Second
	// minTail and maxTail are bounds on the number of last entries in which a pass searches
	// for its position before it reads the whole log.
	minTail, maxTail = 1000, 256_000
)

// Logs reads the engine's json-file log: directly from its files if this process can read
// them (see [logFiles]), otherwise through the API. If the log no longer contains the
// position of the last reading, the sink gets a mark that output is missing.
//
// Through the API, the first pass reads the whole log, whose size is limited, and skips
// entries up to since. Otherwise a line that began before since and ended later would not
// arrive completely (see [cursor]). Later passes find their position in the log's tail. A
// pass follows only if little is left to read, because engine 20.10 does not notice a new
// log file while a follower still reads old ones. The last pass comes after the
// container's end, for its last output.
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
		over := ended(c.State) // checked before reading: if the container has ended, this reading is complete
		live, before := follow && !over && near, cur.taken
		err = d.pass(ctx, cli, c, live, tail, cur)
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
		// The stream ended although the container runs.
		pause = min(2*pause+20*time.Millisecond, 2*time.Second)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// pass streams the log once through cur: only its tail if cur can find its position
// there, otherwise all of it. It ends without error at the end of the log or, with
// follow, at the container's end. It returns errLost if the position is not in the tail.
func (d *Driver) pass(ctx context.Context, cli *client.Client, c container.InspectResponse, follow bool, tail int, cur *cursor) error {
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
	body, err := cli.ContainerLogs(ctx, c.ID, opts)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if follow {
		quiet := time.AfterFunc(silence, cancel)
		defer quiet.Stop()
		body = &resetting{body, quiet}
	}
	err = read(body, cur, c.Config != nil && c.Config.Tty, follow, tail)
	switch {
	case ctx.Err() != nil && outer.Err() == nil:
		return errSilent
	case err == nil && cur.seeking:
		return errLost
	}
	return err
}

// read passes a stream's entries to cur until the stream ends.
func read(body io.Reader, cur *cursor, tty, live bool, tail int) error {
	r := bufio.NewReaderSize(body, 64<<10)
	f := frame{plain: tty}
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

// resetting restarts a timer at each read.
type resetting struct {
	io.ReadCloser
	timer *time.Timer
}

func (r *resetting) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.timer.Reset(silence)
	return n, err
}
