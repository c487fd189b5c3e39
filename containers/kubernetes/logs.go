package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// maxPiece is the longest piece of a line that a sink gets, in bytes.
const maxPiece = 64 << 10

// overlap is the part of the log before its position that a reading repeats: the times in a log
// are not in order, and a request can name only full seconds.
const overlap = 2 * time.Second

// errHeadless reports that the output begins in the middle of a long line, so that its first
// part has no time.
var errHeadless = errors.New("the output begins within a line")

// logs reads the logs of pods.
type logs struct {
	c            *client
	watch        *podWatch
	nodePatience time.Duration // as in [Options]
}

// Logs reads the log from the apiserver, which asks the node's kubelet. A cluster does not
// separate the two streams, so all output is reported as standard output.
func (l *logs) Logs(ctx context.Context, id string, since time.Time, follow bool, sink containers.LogSink) error {
	what := "read logs of pod " + l.c.ns.Short(id)
	cur := &cursor{sink: sink, sent: since}
	_, at := l.c.ns.Split(id)
	told, leave := l.watch.hints.subscribe(at)
	defer leave()
	whole, quiet := false, 100*time.Millisecond
	var silent time.Time // time since when the node's kubelet cannot be reached
	pod := l.runs(id, follow)
	for {
		var err error
		if pod == nil {
			if pod, err = l.c.pod(ctx, what, id); err != nil {
				return err
			}
		}
		s := manifest.Status(pod)
		if manifest.Gated(pod) || manifest.StateOf(pod) == containers.StateCreated && pod.Annotations[manifest.FaultKey] != "" {
			return nil
		}
		over := manifest.Ended(pod) // read before the log: if the pod has ended, this reading is complete
		if s != nil && (s.State.Running != nil || s.State.Terminated != nil) {
			err = l.read(ctx, pod, cur, follow && !over, whole)
		}
		switch {
		case errors.Is(err, errHeadless) && !whole:
			whole, pod = true, nil
			continue
		case errors.Is(err, errHeadless):
			// Not even the beginning has a time: the kubelet has answered that there is no log, because
			// it removes the containers of a pod that is being deleted.
			if over || !follow {
				cur.finish()
				return nil
			}
		case unreached(err):
			// The node does not answer, but the cluster does. If a pod has ended on a node that does not
			// return, its unread output is lost.
			if lasts(&silent, l.nodePatience) && over {
				return nil
			}
		case err != nil && !passing(err):
			return fail(ctx, what, err)
		case err == nil && (over || !follow), over && s != nil && apierrors.IsNotFound(err):
			return nil
		}
		whole = false
		if !unreached(err) {
			silent = time.Time{}
		}
		select {
		case <-told.changed:
			quiet = 100 * time.Millisecond
			pod = told.takeAfter(pod)
		case <-time.After(quiet): // the stream ended although the program runs
			quiet = min(2*quiet, 5*time.Second)
			pod = nil
		case <-ctx.Done():
			return fail(ctx, what, ctx.Err())
		}
	}
}

// runs returns a running pod from the state that Start has read and the changes since then, or
// nil if the pod must be read.
//
// If a followed pod has ended in the meantime, its log ends too, and then Logs reads the pod
// again. A log that is not followed is read once, and Logs must know whether the pod has ended.
// So runs returns nil for it.
func (l *logs) runs(id string, follow bool) *corev1.Pod {
	if pod := l.watch.handover.latest(id); follow && pod != nil && manifest.Running(pod) {
		return pod
	}
	return nil
}

// passing reports whether the kubelet does not have the container yet, or not any more.
func passing(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
}

// unreached reports whether the apiserver answers, but cannot reach the node's kubelet.
func unreached(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code >= 500
}

// read streams the log once through cur. It begins shortly before the position of cur, or at
// the beginning of the log if whole is true.
func (l *logs) read(ctx context.Context, pod *corev1.Pod, cur *cursor, follow, whole bool) error {
	options := &corev1.PodLogOptions{Container: manifest.ProgramIn(pod), Timestamps: true, Follow: follow}
	if !cur.sent.IsZero() && !whole {
		from := metav1.NewTime(cur.sent.Add(-overlap))
		options.SinceTime = &from
	}
	body, err := l.c.pods(l.c.core.Get(), manifest.HomeOf(pod)).SubResource("log").VersionedParams(options, parameters).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	before := *cur
	cur.rewind()
	r := bufio.NewReader(body) // the default size, because a daemon follows thousands of logs
	for {
		text, err := r.ReadSlice('\n')
		if len(text) > 0 {
			if fault := cur.add(text); fault != nil {
				if cur.last.IsZero() { // nothing was read
					*cur = before
				}
				return fault
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			// In a complete log, the last line counts even without a newline.
			if !follow {
				cur.finish()
			}
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
	}
}

// cursor gives each piece of output a unique time and sends each piece once. The kubelet's
// times cannot serve as positions, because it stamps the two streams independently, and a long
// line has only one time. So a piece that is not later than its predecessor gets the
// predecessor's time plus 1 ns. The times depend on the log only.
type cursor struct {
	sink containers.LogSink
	sent time.Time // time of the newest piece that the sink has
	last time.Time // time of the newest piece read

	open bool // the position is within a line
	held []byte
}

// rewind prepares cur for another reading.
func (c *cursor) rewind() { c.last, c.open, c.held = time.Time{}, false, nil }

// add adds a part of the log. The part may end within a line.
func (c *cursor) add(part []byte) error {
	c.held = append(c.held, part...)
	if !c.open {
		stamp, rest, ok := bytes.Cut(c.held, []byte(" "))
		if !ok && len(c.held) < len(time.RFC3339Nano)+1 && c.held[len(c.held)-1] != '\n' {
			return nil // the rest of the line follows
		}
		at, err := time.Parse(time.RFC3339Nano, string(bytes.TrimSuffix(stamp, []byte("\n"))))
		if err != nil {
			return errHeadless
		}
		if !ok {
			rest = []byte("\n")
		}
		at = at.UTC()
		if !at.After(c.last) {
			at = c.last.Add(1)
		}
		c.last, c.open = at.Add(-1), true // the first piece gets the time at
		c.held = append([]byte(nil), rest...)
	}
	text, done := bytes.CutSuffix(c.held, []byte("\n"))
	for len(text) > maxPiece {
		c.send(text[:maxPiece], true)
		text = text[maxPiece:]
	}
	if done {
		c.send(text, false)
		c.open, c.held = false, c.held[:0]
		return nil
	}
	c.held = append([]byte(nil), text...)
	return nil
}

// finish ends a last line that has no newline.
func (c *cursor) finish() {
	if c.open {
		c.send(c.held, false)
		c.open, c.held = false, nil
	}
}

func (c *cursor) send(text []byte, partial bool) {
	c.last = c.last.Add(1)
	if c.last.After(c.sent) {
		c.sent = c.last
		c.sink(c.last, containers.Stdout, text, partial)
	}
}
