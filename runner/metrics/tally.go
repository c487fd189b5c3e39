package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Tally counts events from the daemon's start on. It is safe for concurrent use.
type Tally struct {
	finished, relaunches, ooms, suspensions, faults, messages *prometheus.CounterVec
	waits                                                     prometheus.Histogram
	errors                                                    *prometheus.HistogramVec
	commits                                                   prometheus.Histogram
}

func newTally() *Tally {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	t := &Tally{
		finished:    counter("carma_tasks_finished_total", "Tasks that have ended, since the daemon's start.", "phase"),
		relaunches:  counter("carma_task_relaunches_total", "Attempts after which the task went back to a queue, by the code of the reason.", "reason"),
		ooms:        counter("carma_task_ooms_total", "Attempts that ran out of memory: gpu or host.", "kind"),
		suspensions: counter("carma_task_suspensions_total", "Tasks that were taken off their GPUs without ending them, by the code of the reason.", "reason"),
		faults:      counter("carma_gpu_faults_total", "Faults of GPUs that began, since the daemon's start.", "gpu", "UUID"),
		messages:    counter("carma_messages_total", "Messages about tasks and GPUs, since the daemon's start, by the kind of channel: sent, retried (it failed and is tried again) or dropped.", "channel_kind", "result"),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "carma_task_wait_seconds", Help: "Time from a task's submission to its first launch.",
			Buckets: []float64{1, 10, 60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 72 * 3600},
		}),
		errors: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "carma_estimate_used_ratio", Help: "Highest memory used on a GPU by estimated memory, of tasks that succeeded; above 1 the estimate was too low.",
			Buckets: []float64{.1, .25, .5, .6, .7, .8, .9, .95, 1, 1.05, 1.1, 1.25, 1.5, 2},
		}, []string{"method"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "carma_journal_commit_seconds", Help: "Time of a commit of the journal, the sync to the disk included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
	}
	for _, phase := range []string{"succeeded", "failed", "cancelled"} {
		t.finished.WithLabelValues(phase) // starts at 0, so that increase() includes the first one
	}
	for _, kind := range []string{"gpu", "host"} {
		t.ooms.WithLabelValues(kind)
	}
	for _, kind := range []string{"webhook", "slack", "mail", "hook"} {
		for _, result := range []string{"sent", "retried", "dropped"} {
			t.messages.WithLabelValues(kind, result)
		}
	}
	return t
}

func (t *Tally) all() []prometheus.Collector {
	return []prometheus.Collector{t.finished, t.relaunches, t.ooms, t.suspensions, t.faults, t.messages, t.waits, t.errors, t.commits}
}

// Finished counts a task that has ended.
func (t *Tally) Finished(phase string) { t.finished.WithLabelValues(phase).Inc() }

// Relaunched counts an attempt after which the task waits again.
func (t *Tally) Relaunched(reason string) { t.relaunches.WithLabelValues(reason).Inc() }

// OOM counts an attempt that ran out of memory; kind is gpu or host.
func (t *Tally) OOM(kind string) { t.ooms.WithLabelValues(kind).Inc() }

// Suspended counts a task that leaves its GPUs.
func (t *Tally) Suspended(reason string) { t.suspensions.WithLabelValues(reason).Inc() }

// Watch starts the count of a GPU's faults at 0.
func (t *Tally) Watch(gpu, uuid string) { t.faults.WithLabelValues(gpu, uuid) }

// Fault counts a fault of a GPU.
func (t *Tally) Fault(gpu, uuid string) { t.faults.WithLabelValues(gpu, uuid).Inc() }

// Waited records a task's wait for its first launch.
func (t *Tally) Waited(d time.Duration) { t.waits.Observe(max(0, d).Seconds()) }

// Estimated records the used share of an estimate.
func (t *Tally) Estimated(method string, used, estimate int64) {
	if used > 0 && estimate > 0 {
		t.errors.WithLabelValues(method).Observe(float64(used) / float64(estimate))
	}
}

// Committed records the duration of a commit.
func (t *Tally) Committed(d time.Duration) { t.commits.Observe(d.Seconds()) }

// Message counts n messages of one kind of channel; result is sent, retried or dropped.
func (t *Tally) Message(kind, result string, n int) {
	t.messages.WithLabelValues(kind, result).Add(float64(n))
}
