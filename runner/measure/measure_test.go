package measure

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/inventory"
	"carma/runner/metrics"
	"carma/runner/record"

	"github.com/rs/zerolog"
)

// cards is a source of two GPUs.
type cards struct{ gpu.Source }

func (cards) Name() string { return "test" }

func (cards) GPUs(context.Context) ([]gpu.Device, error) {
	return []gpu.Device{{UUID: "GPU-a"}, {UUID: "GPU-b", Index: 1}}, nil
}

// TestCounter checks that the effects of events are on the page, and that faults that the first
// sample shows are not counted as new.
func TestCounter(t *testing.T) {
	pages := metrics.New("test", "host", func(context.Context) (metrics.State, error) { return metrics.State{}, nil })
	gpus, err := inventory.New(t.Context(), cards{}, "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	c := NewCounter(pages.Tally, record.NewStore(), gpus)
	sample := func(a, b string) {
		c.Count(model.Sampled{GPUs: []model.GPUSample{{ID: "GPU-a", Fault: a}, {ID: "GPU-b", Fault: b}}}, nil)
	}
	sample("broken at the start", "")
	sample("broken at the start", "it fell off")
	sample("broken at the start", "it fell off")
	c.Count(model.Exited{Task: 1, Attempt: 1, Class: model.ExitGPUOOM}, []model.Decision{model.Requeue{Task: 1, Reason: model.Reason{Code: model.ReasonOOM}}})
	done := model.Task{Phase: model.Succeeded, Estimate: model.Estimate{Memory: 2, Method: "declared"}, Attempts: []model.Attempt{{N: 1, Class: model.ExitOK, Peak: 1}}}
	c.Count(model.Exited{Task: 1, Attempt: 2}, []model.Decision{model.Finish{Task: done}, model.Suspend{Task: 2, Reason: model.Reason{Code: model.ReasonSuspended}}})
	w := httptest.NewRecorder()
	pages.Handler(metrics.WithNames).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`carma_gpu_faults_total{UUID="GPU-a",gpu="0"} 0`, `carma_gpu_faults_total{UUID="GPU-b",gpu="1"} 1`, `carma_task_ooms_total{kind="gpu"} 1`,
		`carma_task_relaunches_total{reason="gpu-oom"} 1`, `carma_tasks_finished_total{phase="succeeded"} 1`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	if t.Failed() {
		t.Log(w.Body.String())
	}
}

// TestQueueFigures checks that waiting tasks are counted by priority and reason, each with the
// longest time that one of them waits.
func TestQueueFigures(t *testing.T) {
	var waiting []*record.Record
	for id := range model.TaskID(4) {
		waiting = append(waiting, &record.Record{Task: model.Task{Request: model.Request{ID: id + 1}, Submitted: units.Instant(id + 1)}})
	}
	waiting[3].Task.Priority = model.High
	waiting[1].Task.QueuedAt = 9
	full := model.ReasonCode("full")
	got := queueFigures(waiting, map[model.TaskID]model.ReasonCode{1: full, 2: full, 4: full}, 10)
	want := []metrics.Queue{
		{Priority: "normal", Reason: "full", Tasks: 2, Oldest: 9}, {Priority: "normal", Reason: unlooked, Tasks: 1, Oldest: 7}, {Priority: "high", Reason: "full", Tasks: 1, Oldest: 6},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
