package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carma/mapper/units"

	"carma/runner/api"
)

// noon is the daemon's time in the canned state.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fakeDaemon answers the API from canned state. A submitted task behaves as
// its image's name says; see play.
type fakeDaemon struct {
	socket string

	mu      sync.Mutex
	changed *sync.Cond // any change of what follows
	server  *http.Server
	info    api.Info
	gpus    []api.GPU
	checks  []api.Check
	tasks   []*fakeTask
	closed  bool
	refuse  int // hang up on this many submissions, after taking them
	hungUp  int
	players sync.WaitGroup
}

type fakeTask struct {
	api.Task
	log   []api.LogLine
	sent  int // of log, on the latest connection
	stops int
	why   api.Why
}

func newFakeDaemon(socket string) *fakeDaemon {
	d := &fakeDaemon{socket: socket, info: api.Info{
		Version: "1.2.3", Now: noon, Speed: 1, PID: 4711, DataDir: "/var/lib/carma", Driver: "docker", Source: "sim:dgx-station-a100",
		Simulated: true, Policy: "magm", Engine: "20.10.24", Queued: 2, Running: 2,
	}}
	d.changed = sync.NewCond(&d.mu)
	return d
}

func (d *fakeDaemon) listen() error {
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: d.routes()}
	d.update(func() { d.server = s })
	go func() { _ = s.Serve(l) }() // ends with hangUp
	return nil
}

// hangUp breaks all connections and stops listening, as a killed daemon does.
func (d *fakeDaemon) hangUp() {
	d.mu.Lock()
	s := d.server
	d.server = nil
	d.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

// restart breaks all connections and listens again.
func (d *fakeDaemon) restart() {
	d.hangUp()
	if err := d.listen(); err != nil {
		panic(err)
	}
}

// close ends the daemon and its tasks.
func (d *fakeDaemon) close() {
	d.hangUp()
	d.update(func() {
		d.closed = true
		for _, task := range d.tasks {
			task.stops = 100
		}
	})
	d.players.Wait()
	d.hangUp() // a player may have restarted it
}

func (d *fakeDaemon) update(fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn()
	d.changed.Broadcast()
}

// until waits for a condition on the state.
func (d *fakeDaemon) until(condition func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !condition() && !d.closed {
		d.changed.Wait()
	}
}

func (d *fakeDaemon) find(ref string) *fakeTask {
	for _, t := range slices.Backward(d.tasks) {
		if t.Name == ref || strconv.FormatInt(t.ID, 10) == ref {
			return t
		}
	}
	return nil
}

func (d *fakeDaemon) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/info", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, &d.info) })
	mux.HandleFunc("GET /v1/gpus", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, &d.gpus) })
	mux.HandleFunc("GET /v1/doctor", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, &d.checks) })
	mux.HandleFunc("POST /v1/prove", func(w http.ResponseWriter, r *http.Request) {
		var p api.ProveRequest
		_ = json.NewDecoder(r.Body).Decode(&p)
		d.answer(w, []api.Check{{Name: "proof on GPU 0", Status: "failure", Detail: "of " + p.Image}})
	})
	mux.HandleFunc("PUT /v1/speed", func(w http.ResponseWriter, r *http.Request) {
		var s api.SpeedChange
		_ = json.NewDecoder(r.Body).Decode(&s)
		d.update(func() { d.info.Speed = s.Speed })
		d.answer(w, &d.info)
	})
	mux.HandleFunc("GET /v1/tasks", d.list)
	mux.HandleFunc("POST /v1/tasks", d.submit)
	mux.HandleFunc("POST /v1/submissions", d.submitAll)
	mux.HandleFunc("POST /v1/submissions/preview", d.preview)
	mux.HandleFunc("GET /v1/groups/{group}", d.group)
	mux.HandleFunc("POST /v1/groups/{group}/stop", d.stopGroup)
	mux.HandleFunc("GET /v1/tasks/{ref}", d.task(func(w http.ResponseWriter, _ *http.Request, t *fakeTask) { d.answer(w, &t.Task) }))
	mux.HandleFunc("GET /v1/tasks/{ref}/why", d.task(func(w http.ResponseWriter, _ *http.Request, t *fakeTask) { d.answer(w, &t.why) }))
	mux.HandleFunc("POST /v1/tasks/{ref}/stop", d.task(func(w http.ResponseWriter, r *http.Request, t *fakeTask) {
		var s api.StopRequest
		_ = json.NewDecoder(r.Body).Decode(&s)
		d.update(func() {
			t.stops++
			t.Reason = s.Reason
			if len(t.log) == 0 && !t.Finished() { // canned
				t.Phase = "cancelled"
			}
		})
		d.answer(w, &t.Task)
	}))
	mux.HandleFunc("DELETE /v1/tasks/{ref}", d.task(func(w http.ResponseWriter, _ *http.Request, t *fakeTask) {
		d.update(func() { d.tasks = slices.DeleteFunc(d.tasks, func(x *fakeTask) bool { return x == t }) })
		w.WriteHeader(http.StatusNoContent)
	}))
	mux.HandleFunc("GET /v1/tasks/{ref}/events", d.task(d.events))
	mux.HandleFunc("GET /v1/tasks/{ref}/logs", d.task(d.logs))
	return mux
}

func (d *fakeDaemon) answer(w http.ResponseWriter, v any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": fmt.Sprintf(format, args...)})
}

func (d *fakeDaemon) task(fn func(http.ResponseWriter, *http.Request, *fakeTask)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		t := d.find(r.PathValue("ref"))
		d.mu.Unlock()
		if t == nil {
			problem(w, http.StatusNotFound, "no task %s", r.PathValue("ref"))
			return
		}
		fn(w, r, t)
	}
}

func (d *fakeDaemon) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	list := []api.Task{}
	d.mu.Lock()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		limit = 1000
	}
	for _, t := range slices.Backward(d.tasks) {
		key, value, both := strings.Cut(q.Get("label"), "=")
		has, ok := t.Submit.Labels[key]
		switch {
		case q.Get("all") == "" && t.Finished():
		case q.Get("group") != "" && t.Group != q.Get("group"):
		case q.Get("user") != "" && t.User != q.Get("user"):
		case key != "" && (!ok || both && has != value):
		case len(list) < limit:
			list = append(list, t.Task)
		}
	}
	d.mu.Unlock()
	d.answer(w, list)
}

func (d *fakeDaemon) submit(w http.ResponseWriter, r *http.Request) {
	var s api.Submit
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		problem(w, http.StatusBadRequest, "%v", err)
		return
	}
	switch s.Image {
	case "missing":
		problem(w, http.StatusUnprocessableEntity, "no image missing on this machine or in its registry; docker pull missing tells more")
		return
	case "full":
		problem(w, http.StatusInsufficientStorage, "the journal's disk is full; the task was not taken")
		return
	case "broken":
		problem(w, http.StatusInternalServerError, "the journal is broken")
		return
	case "hang-up":
		d.hangUp()
		return
	}
	t, hangUp := d.take(s, "")
	d.players.Go(func() { d.play(t) })
	if hangUp {
		d.restart()
		return
	}
	answer := api.Submitted{ID: t.ID, Name: t.Name}
	if s.EstModel == "" && s.Mem == 0 && s.Image == "ok" {
		answer.Warnings = []string{"nothing is known about its memory: it gets a whole GPU"}
	}
	d.answer(w, answer)
}

// take enters a submitted task.
func (d *fakeDaemon) take(s api.Submit, group string) (t *fakeTask, hangUp bool) {
	d.update(func() {
		t = &fakeTask{Task: api.Task{
			ID: 1, Name: s.Name, Group: group, User: "ann", Image: s.Image, Submit: s, GPUCount: max(1, s.GPUs), Phase: "queued",
			Position: 2, Waits: "GPU 0 memory 31.2 of 40.0 GiB reserved, needs 12.3", Submitted: d.info.Now, Need: int64(12 * units.GiB),
		}}
		if n := len(d.tasks); n > 0 {
			t.ID = d.tasks[n-1].ID + 1
		}
		if t.Name == "" {
			t.Name = fmt.Sprintf("%s-%d", s.Image, t.ID)
		}
		d.tasks = append(d.tasks, t)
		if hangUp = d.hungUp < d.refuse; hangUp {
			d.hungUp++
		}
	})
	return t, hangUp
}

// play lets a task run as its image's name says.
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
		// A connection that was just broken may not have noticed yet.
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

// stream sends events until next says that it is over.
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
