package root

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"carma/runner/api"
)

// play simulates the run of a task. The name of the image selects the behaviour.
func (d *fakeDaemon) play(t *fakeTask) {
	run := func() {
		d.update(func() {
			t.Phase, t.Position, t.Waits = "running", 0, ""
			t.Started = d.info.Now.Add(10 * time.Second)
			t.Attempts = append(t.Attempts, api.Attempt{N: len(t.Attempts) + 1, Launched: d.info.Now, Started: t.Started, GPUs: []api.GPURef{{Index: 0}}})
		})
	}
	end := func(phase string, code int, reason string) {
		d.update(func() {
			at := &t.Attempts[len(t.Attempts)-1]
			at.Ended, at.Outcome, at.ExitCode = at.Started.Add(time.Minute), map[string]string{"succeeded": "ok", "failed": "program"}[phase], code
			t.Phase, t.ExitCode, t.Reason, t.Ended = phase, &code, reason, at.Ended
		})
	}
	say := func(lines ...string) {
		d.update(func() {
			for _, line := range lines {
				stream, text, _ := strings.Cut(line, ":")
				partial := strings.HasSuffix(text, "\\")
				t.log = append(t.log, api.LogLine{
					At: noon.Add(time.Duration(len(t.log)) * time.Second), Attempt: len(t.Attempts),
					Stream: map[string]string{"o": "stdout", "e": "stderr", "c": "carma"}[stream], Line: strings.TrimSuffix(text, "\\"), Partial: partial,
				})
			}
		})
	}
	stopped := func(times int) { d.until(func() bool { return t.stops >= times }) }
	switch t.Image {
	case "ok", "carma/simtask:latest":
		run()
		say("o:epoch 1", "e:a warning", "o:loss\\", "o: 0.5", "o:done")
		end("succeeded", 0, "")
	case "exit3":
		run()
		say("o:epoch 1")
		end("failed", 3, "exit code 3 (ValueError: bad\x1b[2J value)")
	case "oom":
		run()
		say("o:epoch 1", "e:torch.OutOfMemoryError: CUDA out of memory")
		d.update(func() {
			at := &t.Attempts[0]
			at.Ended, at.Outcome, at.ExitCode = at.Started.Add(30*time.Second), "gpu-oom", 1
		})
		say("c:ran out of GPU memory; runs again with 16.0 GiB")
		run()
		say("o:epoch 1", "o:done")
		end("succeeded", 0, "")
	case "sleep":
		run()
		say("o:ready")
		stopped(1)
		say("o:got SIGTERM")
		end("cancelled", 143, "stopped by ann")
	case "stubborn":
		run()
		say("o:ready")
		stopped(100)
		end("cancelled", 137, "stopped")
	case "waiting":
		say("c:waits")
		stopped(1)
		d.update(func() { t.Phase, t.Reason, t.Ended = "cancelled", "stopped before it ran", noon })
	case "never":
		d.update(func() { t.Phase, t.Reason = "failed", "cannot start: exec: \"nonsense\": not found" })
	case "restart":
		run()
		say("o:line 1", "e:line 2", "o:line 3\\", "o: goes on", "o:same", "o:same")
		d.until(func() bool { return t.sent == len(t.log) })
		d.restart()
		say("o:same", "e:line 5")
		d.until(func() bool { return t.sent == len(t.log) })
		d.restart()
		say("o:line 6")
		end("succeeded", 0, "")
	}
}

func (d *fakeDaemon) events(w http.ResponseWriter, r *http.Request, t *fakeTask) {
	last := ""
	d.stream(r, func() (event, bool) {
		b, _ := json.Marshal(&t.Task)
		if string(b) == last {
			return event{}, t.Finished()
		}
		last = string(b)
		return event{"task", last}, false
	}, w)
}

// allEvents sends each change of a task from now on.
func (d *fakeDaemon) allEvents(w http.ResponseWriter, r *http.Request) {
	last := map[int64]string{}
	changed := func() (event, bool) {
		for _, t := range d.tasks {
			if b, _ := json.Marshal(&t.Task); string(b) != last[t.ID] {
				last[t.ID] = string(b)
				return event{"task", string(b)}, false
			}
		}
		return event{}, false
	}
	d.update(func() {
		for e, _ := changed(); e.name != ""; e, _ = changed() {
		}
		d.watched++
	})
	d.stream(r, changed, w)
}

type event struct{ name, data string }

func (d *fakeDaemon) logs(w http.ResponseWriter, r *http.Request, t *fakeTask) {
	q := r.URL.Query()
	attempt, _ := strconv.Atoi(q.Get("attempt"))
	next := 0
	if tail, _ := strconv.Atoi(q.Get("tail")); tail > 0 {
		d.mu.Lock()
		next = max(0, len(t.log)-tail)
		d.mu.Unlock()
	}
	over := false
	d.stream(r, func() (event, bool) {
		for next < len(t.log) {
			l := t.log[next]
			next++
			if attempt == 0 || l.Attempt == attempt {
				b, _ := json.Marshal(l)
				return event{"log", string(b)}, false
			}
		}
		// The server may not have noticed yet that the connection was broken.
		if t.sent != next && d.server == r.Context().Value(http.ServerContextKey) {
			t.sent = next
			d.changed.Broadcast()
		}
		if over || !t.Finished() && q.Get("follow") != "" {
			return event{}, over
		}
		over = true
		b, _ := json.Marshal(&t.Task)
		return event{"task", string(b)}, false
	}, w)
}

// stream sends events until next reports the end.
func (d *fakeDaemon) stream(r *http.Request, next func() (event, bool), w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	gone := false
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-r.Context().Done():
			d.update(func() { gone = true })
		case <-stop:
		}
	})
	defer watcher.Wait()
	defer close(stop)
	d.mu.Lock()
	defer d.mu.Unlock()
	for !gone {
		e, over := next()
		switch {
		case e.name != "":
			d.mu.Unlock()
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, e.data)
			w.(http.Flusher).Flush()
			d.mu.Lock()
		case over:
			return
		default:
			d.changed.Wait()
		}
	}
}
