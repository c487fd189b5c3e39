package root

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"

	"carma/runner/api"
)

// changes adds the routes that change tasks and GPUs. The request becomes the task's reason, so
// that scripts can check it.
func (d *fakeDaemon) changes(mux *http.ServeMux) {
	change := d.task(func(w http.ResponseWriter, r *http.Request, t *fakeTask) {
		body, _ := io.ReadAll(r.Body)
		if t.Finished() {
			problem(w, http.StatusConflict, "task %d has ended; carma rerun %d runs it again", t.ID, t.ID)
			return
		}
		if t.Phase == "running" && path.Base(r.URL.Path) == "hold" {
			problem(w, http.StatusConflict, "task %d is running; carma requeue --hold %d stops it and holds it", t.ID, t.ID)
			return
		}
		d.update(func() { t.Reason = r.Method + " " + r.URL.Path + " " + string(bytes.TrimSpace(body)) })
		d.answer(w, &t.Task)
	})
	for _, route := range []string{"PATCH /v1/tasks/{ref}", "POST /v1/tasks/{ref}/hold", "POST /v1/tasks/{ref}/release", "POST /v1/tasks/{ref}/requeue", "POST /v1/tasks/{ref}/move", "POST /v1/tasks/{ref}/pin"} {
		mux.HandleFunc(route, change)
	}
	mux.HandleFunc("POST /v1/tasks/{ref}/exec", d.task(d.exec))
	mux.HandleFunc("POST /v1/tasks/{ref}/suspend", d.task(d.suspend))
	mux.HandleFunc("POST /v1/tasks/{ref}/resume", d.task(d.resume))
	quotas := []api.Account{
		{User: "ann", Tasks: 2, GPUs: 2, Memory: 24 << 30, QuotaGPUs: 4, Waiting: 3, Used: 5400, Fair: true, Weight: 1, Share: 0.5},
		{User: "bob", Waiting: 1, Fair: true, Weight: 1, Share: 0.5}, {Group: "students", Tasks: 2, GPUs: 2, Memory: 24 << 30, QuotaTasks: 20, Waiting: 4, Used: 5400, Fair: true, Share: 1},
	}
	used := []api.Used{
		{Day: "2026-01-02", User: "eve", Account: "students", Image: "gone", Tasks: 7, Succeeded: 6, Failed: 1, Starts: 7},
		{Day: "2026-01-02", User: "eve", Account: "students", Image: "gone", GPU: new(1), GPUSeconds: 36000},
	}
	mux.HandleFunc("GET /v1/used", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("since") == "" || q.Get("since") > "2026-01-02" || // without a day: for the scripts about other tasks
			q.Get("until") != "" && q.Get("until") <= "2026-01-02" {
			d.answer(w, &[]api.Used{})
			return
		}
		d.answer(w, &used)
	})
	scores := api.Scores{Unscored: 3, Families: []api.Score{
		{Family: "carma cnn, a100-2025-09", Tasks: 12, Median: 0.021, Above: 0, Overhead: 0.09, PlainTasks: 12, PlainMedian: 0.16, PlainAbove: 0.25, PlainOverhead: 0.04},
		{Family: "declared", Tasks: 2, Median: -1, Overhead: 0.5},
	}}
	mux.HandleFunc("GET /v1/estimates/scores", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, &scores) })
	mux.HandleFunc("GET /v1/quotas", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, &quotas) })
	var reserved []api.Reservation
	mux.HandleFunc("GET /v1/reservations", func(w http.ResponseWriter, _ *http.Request) { d.answer(w, &reserved) })
	mux.HandleFunc("POST /v1/reservations", func(w http.ResponseWriter, r *http.Request) {
		var q api.ReserveRequest
		_ = json.NewDecoder(r.Body).Decode(&q)
		v := api.Reservation{GPUs: []api.GPURef{{Index: 1}}, Memory: q.Memory, For: q.For, From: q.From, Until: q.Until, By: "root", Why: q.Why}
		d.update(func() {
			v.ID = len(reserved) + 1
			reserved = append(reserved, v)
			d.gpus[0].Reservations = reserved
		})
		d.answer(w, &v)
	})
	mux.HandleFunc("DELETE /v1/reservations/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != "1" {
			problem(w, http.StatusNotFound, "there is no reservation %s; carma reservations lists them", r.PathValue("id"))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /v1/gpus/close", func(w http.ResponseWriter, r *http.Request) {
		var q api.CloseRequest
		_ = json.NewDecoder(r.Body).Decode(&q)
		d.update(func() {
			for i := range d.gpus {
				if !q.All && !slices.Contains(q.GPUs, strconv.Itoa(i)) {
					continue
				}
				if d.gpus[i].Closed = nil; !q.Open {
					d.gpus[i].Closed = &api.Closure{By: "root", Why: q.Why, Move: q.Move}
					if q.For > 0 {
						d.gpus[i].Closed.Until = noon.Add(q.For)
					}
				}
			}
		})
		d.answer(w, &d.gpus)
	})
	mux.HandleFunc("POST /v1/web", func(w http.ResponseWriter, _ *http.Request) {
		d.answer(w, &api.WebLogin{Ticket: "t1", Ends: time.Now().Add(5 * time.Minute), Socket: "/run/carma/carma-web.sock"})
	})
	mux.HandleFunc("POST /v1/launching", func(w http.ResponseWriter, r *http.Request) {
		var q api.CloseRequest
		_ = json.NewDecoder(r.Body).Decode(&q)
		d.update(func() {
			if d.info.Paused = nil; !q.Open {
				d.info.Paused = &api.Closure{By: "root", Why: q.Why}
				if q.For > 0 {
					d.info.Paused.Until = noon.Add(q.For)
				}
			}
		})
		d.answer(w, &d.info)
	})
}
