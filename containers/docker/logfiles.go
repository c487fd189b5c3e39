package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"

	"carma/containers"
	"carma/containers/lines"
)

// logFiles are the files of a container's log, for a process that may read them. When a
// file is full, the engine begins a new one, renames the others and deletes the oldest. A
// file that is open here stays readable. So nothing is lost if each new file is opened in
// time. Unlike the engine's API, logFiles can detect a missed file.
type logFiles struct {
	base string       // path of the newest file
	most int          // number of files that the engine keeps
	open []*os.File   // the files not read to their end, oldest first
	read lines.Reader // reader of open[0]
	gap  bool         // output is missing before open[0]
	gaps []int        // indexes of open before which output is missing

	unlooked int   // bytes read since the last call of look
	mostHeld int64 // overrides mostHeld in tests, if not 0
}

// While a file is read, the engine may begin and delete several. Calling look every
// lookEvery bytes opens them in time. A deleted file occupies disk space until it is
// closed, so a reader that is mostHeld bytes behind opens no more.
const (
	lookEvery = 512 << 10
	mostHeld  = 256 << 20
)

// lagging reports whether the open files have mostHeld bytes. All files are about equally
// large.
func (f *logFiles) lagging() bool {
	first, err := f.open[0].Stat()
	return err == nil && len(f.open) > f.most && int64(len(f.open))*first.Size() >= cmp.Or(f.mostHeld, mostHeld)
}

// logFilesOf returns the files of a container's log, or nil if this process cannot read
// them.
func (d *Driver) logFilesOf(c *container.InspectResponse) *logFiles {
	if c.LogPath == "" || c.HostConfig == nil || c.HostConfig.LogConfig.Type != "json-file" || d.SameFiles() != nil {
		return nil
	}
	most, err := strconv.Atoi(c.HostConfig.LogConfig.Config["max-file"])
	if err != nil || most < 2 {
		return nil
	}
	f := &logFiles{base: c.LogPath, most: most}
	if err := f.look(lookTries); err != nil || len(f.open) == 0 {
		f.close()
		return nil
	}
	f.read.Reset(f.open[0])
	return f
}

func (f *logFiles) close() {
	for _, file := range f.open {
		_ = file.Close()
	}
	f.open = nil
}

// look opens the files that are newer than the open ones, from the newest to the oldest.
// If the engine renames files meanwhile, a file may appear twice or a number may be
// missing. Then look begins again, so that no file is skipped. After the given number of
// walks it leaves the files to the next call or, if walks is lookTries, concludes that
// somebody deleted the missing file.
func (f *logFiles) look(walks int) error {
	f.unlooked = 0
	if n := len(f.open); n > 0 {
		if same, err := sameFile(f.open[n-1], f.base); same || err != nil {
			return err
		}
	}
	for try := range walks {
		found, state, err := f.walk()
		if err != nil || state == renaming || state == incomplete && try < lookTries-1 {
			for _, file := range found {
				_ = file.Close()
			}
			if err != nil {
				return err
			}
			if try == walks-1 {
				return nil
			}
			time.Sleep(time.Millisecond << min(try, 5))
			continue
		}
		if state != reachedOpen && len(f.open) > 0 {
			f.gaps = append(f.gaps, len(f.open))
		}
		for i := len(found) - 1; i >= 0; i-- {
			f.open = append(f.open, found[i])
		}
		return nil
	}
	return nil
}

// lookTries limits the walks of one look, which take up to 1.2 s together. If a number
// still has no file after them, the file is not being renamed: somebody else deleted it.
const lookTries = 40

// walked is the reason why a walk over the files ended.
type walked int

const (
	reachedOldest walked = iota // no older file exists
	reachedOpen                 // reached the newest file that is already open
	incomplete                  // a number has no file, though older files must exist
	renaming                    // the engine renamed files meanwhile
)

// walk opens files, from the newest on, until it meets the newest open one. The engine
// renames the oldest first, so each number in turn has no file for a moment, while the
// next higher number has one.
func (f *logFiles) walk() (found []*os.File, state walked, err error) {
	for i := range f.most {
		path := f.path(i)
		file, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			switch _, err := os.Stat(f.path(i + 1)); {
			case i == 0:
				return found, renaming, nil // the engine is about to create the newest file
			case err == nil || len(f.open) > 0 && i < f.most-1:
				return found, incomplete, nil
			}
			return found, reachedOldest, nil
		}
		if err != nil {
			return found, reachedOldest, err
		}
		if n := len(f.open); n > 0 {
			if same, _ := sameFile(f.open[n-1], path); same {
				_ = file.Close()
				return found, reachedOpen, nil
			}
		}
		if n := len(found); n > 0 && same(found[n-1], file) {
			_ = file.Close()
			return found, renaming, nil
		}
		found = append(found, file)
	}
	return found, reachedOldest, nil
}

func same(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func sameFile(a *os.File, path string) (bool, error) {
	x, err := a.Stat()
	if err != nil {
		return false, err
	}
	y, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(x, y), err
}

// oldest reports whether the log has as many files as the engine keeps. Then the
// engine may have deleted some.
func (f *logFiles) oldest() bool {
	_, err := os.Stat(f.path(f.most - 1))
	return err == nil
}

// path returns the path of the n-th log file. The newest file is number 0.
func (f *logFiles) path(number int) string {
	if number == 0 {
		return f.base
	}
	return f.base + "." + strconv.Itoa(number)
}

// next returns the next stored entry, valid until the next call, or nil at the present
// end.
func (f *logFiles) next() ([]byte, error) {
	for {
		if line, err := f.read.Next(); line != nil || err != nil {
			if f.unlooked += len(line); f.unlooked >= lookEvery && !f.lagging() {
				err = cmp.Or(err, f.look(1))
			}
			return line, err
		}
		if !f.lagging() {
			if err := f.look(lookTries); err != nil {
				return nil, err
			}
		}
		last := len(f.open) == 1 // checked before reading: if the file is not the last, it is complete
		if line, err := f.read.Next(); line != nil || err != nil || last {
			return line, err
		}
		_ = f.open[0].Close()
		f.open = f.open[1:]
		f.read.Reset(f.open[0])
		for i := range f.gaps {
			f.gaps[i]--
		}
		if len(f.gaps) > 0 && f.gaps[0] == 0 {
			f.gap, f.gaps = true, f.gaps[1:]
		}
	}
}

// The parts of an entry: {"log":"a line\n","stream":"stdout","time":"2026-..."}.
var (
	entryLog    = []byte(`{"log":"`)
	entryStream = []byte(`","stream":"`)
	entryTime   = []byte(`","time":"`)
	newlineEnd  = []byte(`\n`)
)

// entry turns a stored entry into a frame like the engine's API. The separators cannot
// occur in the text, because each quote in a quoted text follows a backslash. It returns
// false if b is no entry.
func (f *frame) entry(b []byte) bool {
	b, ok1 := bytes.CutPrefix(b, entryLog)
	text, rest, ok2 := bytes.Cut(b, entryStream)
	stream, rest, ok3 := bytes.Cut(rest, entryTime)
	at, _, ok4 := bytes.Cut(rest, []byte(`"`))
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return false
	}
	f.stream = containers.Stdout
	if string(stream) == "stderr" {
		f.stream = containers.Stderr
	}
	f.data = append(append(f.data[:0], at...), ' ')
	plain, whole := bytes.CutSuffix(text, newlineEnd)
	if bytes.IndexByte(plain, '\\') < 0 {
		f.data = append(f.data, plain...)
		if whole {
			f.data = append(f.data, '\n')
		}
		return true
	}
	var s string
	if json.Unmarshal(append(append([]byte{'"'}, text...), '"'), &s) != nil {
		return false
	}
	f.data = append(f.data, s...)
	return true
}

// readFiles implements Logs for a log whose files this process can read.
func (d *Driver) readFiles(ctx context.Context, id string, files *logFiles, since time.Time, follow bool, sink containers.LogSink) error {
	what := "read logs of container " + short(id)
	ended := make(chan error, 1)
	watch, stop := context.WithCancel(ctx)
	defer func() { stop(); <-ended }()
	if follow {
		go func() { _, err := d.Wait(watch, id); ended <- err; close(ended) }()
	} else {
		close(ended)
	}
	cur := newCursor(since, sink)
	cur.rewind()
	cur.begun = true // this function itself reports missing output
	// The engine may have deleted files that nobody has read. It has not done so if there
	// are fewer files than it keeps, or if the last entry read still exists.
	doubt := files.oldest()
	over := !follow
	var f frame
	for pause := time.Duration(0); ; {
		n := 0
		for {
			b, err := files.next()
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if b == nil || n&0xff == 0 && ctx.Err() != nil {
				break
			}
			n++
			ok := f.entry(b)
			at, _, _ := parse(f.data)
			if doubt && at.After(since) {
				files.gap = true
			}
			doubt = false
			if at = cur.next(at).Add(-1); files.gap || !ok {
				files.gap = false
				sink(at, containers.Missing, containers.Lines{Lines: -1}.Text(), false)
			}
			if ok {
				if err := cur.entry(&f, false); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
			}
		}
		if over && ctx.Err() == nil {
			if follow || d.over(ctx, id) {
				cur.finish()
			}
			return nil
		}
		if pause = min(2*pause+5*time.Millisecond, 100*time.Millisecond); n > 0 {
			pause = 5 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case err := <-ended:
			if err != nil {
				return err
			}
			over = true // all output is in the files now
		case <-time.After(pause):
		}
	}
}

// over reports whether a container has ended. If so, its last line is complete too.
func (d *Driver) over(ctx context.Context, id string) bool {
	c, _, err := d.inspect(ctx, "look at container "+short(id), id)
	return err == nil && ended(c.State)
}
