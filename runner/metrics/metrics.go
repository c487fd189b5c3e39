// Package metrics provides the daemon's page for Prometheus: its names, its counters and
// the conversion of a state to figures.
//
// The package does not depend on the daemon: the runner passes a [State] for each scrape
// and reports events to a [Tally]. Names follow Prometheus: base units, _total for
// counters, _info for labels that never change. The labels of GPUs (gpu, UUID, device,
// modelName, Hostname) are the labels of dcgm-exporter, so that both can be joined in a
// query.
package metrics

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapeLimit is the longest time that a scrape waits for the daemon's loop.
const scrapeLimit = 5 * time.Second

// Names is set if a page contains figures of single tasks and users.
type Names bool

// The two kinds of page.
const (
	WithNames    Names = true
	WithoutNames Names = false
)

// Source returns the state for one scrape.
type Source func(context.Context) (State, error)

// Pages makes pages that share their counters.
type Pages struct {
	*Tally
	version, host string
	source        Source
}

// New returns the pages of a daemon. host is the machine's name.
func New(version, host string, source Source) *Pages {
	return &Pages{Tally: newTally(), version: version, host: host, source: source}
}

// Handler returns a page.
func (p *Pages) Handler(names Names) http.Handler {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(p.version), &collector{pages: p, names: names},
	)
	for _, c := range p.Tally.all() {
		reg.MustRegister(c)
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: 4, Timeout: 2 * scrapeLimit,
	})
}

func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "carma_build_info", Help: "The version of the daemon; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
