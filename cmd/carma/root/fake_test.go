package root

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// noon is the daemon's time in the canned state.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fakeDaemon answers the API from canned state. The name of its image selects the behaviour of
// a submitted task; see play.
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
	refuse  int // number of submissions after which the daemon breaks the connection instead of answering
	hungUp  int
	watched int // streams of all events
	players sync.WaitGroup
	notify  api.Notify
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
		Energy: &api.Energy{Since: noon.AddDate(0, -1, 0), TasksJ: 150e6, IdleJ: 2.5e6, Users: map[string]float64{"ann": 90e6, "bob": 30e6, "cid": 20e6, "dee": 10e6}},
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
	mux.HandleFunc("POST /v1/calibrate", func(w http.ResponseWriter, r *http.Request) {
		d.answer(w, &api.Calibration{
			GPU: 1, Model: "A100", Simulated: true, Seconds: 42, Now: api.Environment{Name: "here-2026-01-02-1200", Context: 600 << 20, CuDNN: 20 << 20, CuBLAS: 32 << 20},
			Before: api.Environment{Name: "a100-2025-09", Context: 525 << 20, CuBLAS: 8 << 20},
		})
	})
	mux.HandleFunc("PUT /v1/speed", func(w http.ResponseWriter, r *http.Request) {
		var s api.SpeedChange
		_ = json.NewDecoder(r.Body).Decode(&s)
		d.update(func() { d.info.Speed = s.Speed })
		d.answer(w, &d.info)
	})
	d.changes(mux)
	mux.HandleFunc("GET /v1/notify", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, &d.notify) })
	mux.HandleFunc("PUT /v1/notify", d.setNotify)
	mux.HandleFunc("POST /v1/notify/test", d.testNotify)
	mux.HandleFunc("GET /v1/tasks", d.list)
	mux.HandleFunc("GET /v1/events", d.allEvents)
	mux.HandleFunc("POST /v1/tasks", d.submit)
	mux.HandleFunc("POST /v1/submissions", d.submitAll)
	mux.HandleFunc("POST /v1/submissions/preview", d.preview)
	mux.HandleFunc("GET /v1/groups/{group}", d.group)
	mux.HandleFunc("POST /v1/groups/{group}/stop", d.stopGroup)
	mux.HandleFunc("GET /v1/tasks/{ref}", d.task(func(w http.ResponseWriter, _ *http.Request, t *fakeTask) { d.answer(w, &t.Task) }))
	mux.HandleFunc("GET /v1/tasks/{ref}/why", d.task(func(w http.ResponseWriter, _ *http.Request, t *fakeTask) { d.answer(w, &t.why) }))
	mux.HandleFunc("GET /v1/audit", func(w http.ResponseWriter, r *http.Request) { d.answer(w, auditOf(r.URL.Query())) })
	mux.HandleFunc("GET /v1/tasks/{ref}/history", d.task(func(w http.ResponseWriter, _ *http.Request, t *fakeTask) { d.answer(w, lifeOf(&t.Task)) }))
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
	o := api.ListOptions{All: q.Get("all") != "", User: q.Get("user"), Group: q.Get("group"), Label: q.Get("label"), Mine: q.Get("mine") != "", Name: q.Get("name"), Phase: q.Get("phase")}
	o.Since, _ = time.Parse(time.RFC3339Nano, q.Get("since"))
	o.Until, _ = time.Parse(time.RFC3339Nano, q.Get("until"))
	for _, t := range slices.Backward(d.tasks) {
		if o.Fits(&t.Task, os.Getuid()) && len(list) < limit {
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

// take adds a submitted task.
func (d *fakeDaemon) take(s api.Submit, group string) (t *fakeTask, hangUp bool) {
	d.update(func() {
		t = &fakeTask{Task: api.Task{
			ID: 1, Name: s.Name, Group: group, User: "ann", UID: os.Getuid(), Priority: cmp.Or(s.Priority, "normal"), Image: s.Image, Submit: s, GPUCount: max(1, s.GPUs), Phase: "queued",
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
