package attempt

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"carma/containers"
	"carma/containers/endtext"
	"carma/runner/storedoutput"
	"carma/runner/tasklog"
	"carma/runner/throughput"
)

const (
	// logDrain is the time without output after which the rest of an ended container's
	// output is given up.
	logDrain = 10 * time.Second
	// stoppedDrain limits the time for reading a stopped task's output after its end,
	// because its GPUs, and a user who removes the task, wait for that.
	stoppedDrain = 5 * time.Second
	// lookEvery is the number of flushes without output after which it is checked whether
	// the output file still exists.
	lookEvery = 5
	// The first and the longest pause before reading the output is tried again.
	readAgain, readAgainMost = 100 * time.Millisecond, 4 * time.Second
)

// output copies the output of an attempt's container.
type output struct {
	*core
	heard atomic.Int64 // number of output lines received
	// erred is the wall-clock time in nanoseconds at which an output line last reported
	// exhausted memory, or 0.
	erred atomic.Int64
	// following reads the task's progress. It is made before the output is read.
	following *throughput.Follower
}

// copy stores the output from where the last daemon stopped. If out is nil, only tail
// gets the output.
func (o *output) copy(ctx context.Context, id string, out *tasklog.Writer, tail *containers.Tail) {
	var since time.Time
	kept := tasklog.NewPieces(out)
	lost := func(err error) {
		if err != nil {
			o.deps.Output.Lost(err)
		}
	}
	if out != nil {
		since = out.Since()
		o.refillTail(tail)
		flushed := make(chan struct{})
		defer func() { <-flushed }()
		flushCtx, end := context.WithCancel(ctx)
		defer end()
		go func() { defer close(flushed); o.flush(flushCtx, out) }()
		defer func() { lost(kept.Flush()) }()
	}
	sink := func(at time.Time, stream containers.Stream, line []byte, partial bool) {
		o.heard.Add(1)
		if o.rec.Submit.TTY && !partial {
			line = bytes.TrimSuffix(line, []byte("\r")) // a terminal ends lines with both
		}
		if stream == containers.Missing {
			lost(kept.Flush())
			storedoutput.NoteMissing(out, at, line)
			return
		}
		if at.After(since) { // an earlier line would be read again
			o.following.Read(at, stream, line, partial)
		}
		since = at
		tail.At(at)
		tail.Add(stream, line, partial)
		o.mps.Hear(line)
		o.hearsMemory(line)
		if out != nil {
			lost(kept.Write(at, tasklog.Stream(stream), line, partial))
		}
	}
	for pause := readAgain; ; pause = min(2*pause, readAgainMost) {
		before := o.heard.Load()
		_, err := o.deps.Engine.Retry(ctx, func() error { return o.deps.Driver.Logs(ctx, id, since, true, sink) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if pause == readAgain || o.heard.Load() > before {
			o.deps.Log.Warn().Err(err).Int64("task", int64(o.launch.Task)).Msg("the output cannot be read; trying again")
			pause = readAgain
		}
		if errors.Is(err, containers.ErrNotFound) {
			if out != nil {
				lost(kept.Flush())
				out.Gap(out.Last().Add(1), -1, "the container was removed before its output was read to the end")
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// await waits for the rest of the output of an ended container, until
// nothing has come for logDrain. If the task is stopped, it waits for
// stoppedDrain at most. end ends the reading.
func (o *output) await(ctx context.Context, logged <-chan struct{}, out *tasklog.Writer, end func()) {
	why, asked, over := "the rest could not be read from the container engine", o.stop.asked, (<-chan time.Time)(nil)
	for heard := int64(-1); ; {
		select {
		case <-logged:
			return
		case <-asked:
			asked, over = nil, time.After(stoppedDrain)
			continue
		case <-over:
			why = "the task was stopped before the rest had been read"
		case <-time.After(logDrain):
			if now := o.heard.Load(); now != heard {
				heard = now
				continue
			}
		}
		end()
		<-logged
		if ctx.Err() == nil && out != nil {
			out.Gap(out.Last().Add(1), -1, why)
			o.deps.Log.Warn().Int64("task", int64(o.launch.Task)).Msg("the output could not be read to its end: " + why)
		}
		return
	}
}

// logFlushEvery is the time between two writes of the output to the disk.
const logFlushEvery = 200 * time.Millisecond

// flush writes the output regularly, which bounds how much must be read
// again after a crash.
func (o *output) flush(ctx context.Context, out *tasklog.Writer) {
	tick := time.NewTicker(logFlushEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if n%lookEvery != 0 && !out.Pending() {
				continue
			}
			if err := out.Flush(); err != nil {
				o.deps.Output.Lost(err)
			}
		}
	}
}

// refillTail reads back the end of the output that an earlier daemon kept.
func (o *output) refillTail(tail *containers.Tail) {
	if !o.resumed {
		return
	}
	lines, err := o.deps.Logs.Tail(int64(o.launch.Task), o.launch.Attempt, containers.TailLines)
	if err != nil {
		return
	}
	for _, l := range lines {
		if l.Stream == tasklog.Note {
			continue
		}
		tail.At(l.At)
		tail.Add(containers.Stream(l.Stream), l.Text, l.Partial)
		o.mps.Hear(l.Text)
	}
}

// hearsMemory starts a reading of the GPUs when a line of output names exhausted memory.
// The program that prints it still has its memory, and may end before the next sample.
func (o *output) hearsMemory(line []byte) {
	if len(o.launch.Grants) == 0 || !endtext.NamesMemory(line) {
		return
	}
	now := time.Now().UnixNano()
	if last := o.erred.Load(); now-last < int64(hearAgain) {
		return
	}
	o.erred.Store(now)
	o.deps.Monitor.Wake()
}

// hearAgain is the shortest time between two readings that lines of output ask for.
const hearAgain = 200 * time.Millisecond
