// Package dcgm reads the activity of GPUs from the metrics of a dcgm-exporter (NVIDIA's
// exporter of DCGM's figures). It is for cards before Hopper, whose activity NVML does
// not report.
package dcgm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"
)

// The fields read; each is 0 to 1.
const (
	fieldSMACT = "DCGM_FI_PROF_SM_ACTIVE"
	fieldSMOCC = "DCGM_FI_PROF_SM_OCCUPANCY"
	fieldDRAMA = "DCGM_FI_PROF_DRAM_ACTIVE"
)

const (
	// maxPage is the largest number of bytes read. A row has some 300 bytes; by default the
	// exporter has some 30 rows for each GPU.
	maxPage = 2 << 20
	// fetchLimit is the longest time of one request.
	fetchLimit = 3 * time.Second
	// stale is the age above which a reading is not used.
	stale = 10 * time.Second
)

// Key names a GPU: a card, with Instance -1, or a MIG instance by its card.
type Key struct {
	UUID     string
	Instance int
}

// Reading is the activity of a GPU. Each value is in [0, 1].
type Reading struct{ SMACT, SMOCC, DRAMA float64 }

// Page contains an exporter's metrics, fetched at intervals. Make one with [Watch].
type Page struct {
	url    string
	client *http.Client
	log    zerolog.Logger
	now    func() time.Time
	end    context.CancelFunc
	ended  chan struct{}

	mu   sync.Mutex
	at   time.Time // time of the readings
	read map[Key]Reading
	err  error // error of the last fetch
}

// Watch fetches metrics at intervals until Close. It does not wait for the first answer.
func Watch(url string, every time.Duration, log zerolog.Logger) *Page {
	ctx, end := context.WithCancel(context.Background())
	p := &Page{
		url: url, log: log, now: time.Now, end: end, ended: make(chan struct{}),
		client: &http.Client{Timeout: fetchLimit}, err: errors.New("not read yet"),
	}
	go p.run(ctx, every)
	return p
}

// Close ends the fetching.
func (p *Page) Close() error {
	p.end()
	<-p.ended
	p.client.CloseIdleConnections()
	return nil
}

func (p *Page) run(ctx context.Context, every time.Duration) {
	defer close(p.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		p.update(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Page) update(ctx context.Context) {
	read, err := p.fetch(ctx)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && (p.err == nil || p.at.IsZero() && p.err.Error() != err.Error()):
		p.log.Warn().Err(err).Str("url", p.url).Msg("the dcgm-exporter cannot be read; activity is coarse where nothing else tells")
	case err == nil && p.err != nil:
		p.log.Info().Str("url", p.url).Int("gpus", len(read)).Msg("the dcgm-exporter can be read")
	}
	p.err = err
	if err == nil {
		p.read, p.at = read, p.now()
	}
}

func (p *Page) fetch(ctx context.Context) (map[Key]Reading, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", p.url, resp.Status)
	}
	body := &io.LimitedReader{R: resp.Body, N: maxPage + 1}
	read, err := Parse(body)
	if body.N <= 0 {
		return nil, fmt.Errorf("%s is longer than %d bytes", p.url, maxPage)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.url, err)
	}
	if len(read) == 0 {
		return nil, fmt.Errorf("%s has no %s; add it to the exporter's fields, with %s and %s", p.url, fieldSMACT, fieldSMOCC, fieldDRAMA)
	}
	return read, nil
}

// Activity returns the last reading of a GPU, 0 to 1 each. ok is false if there is none,
// or only an old one.
func (p *Page) Activity(uuid string, instance int) (smact, smocc, drama float64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := p.now().Sub(p.at); age > stale {
		return 0, 0, 0, false
	}
	r, ok := p.read[Key{uuid, instance}]
	return r.SMACT, r.SMOCC, r.DRAMA, ok
}

// Err returns the error of the last fetch, or nil.
func (p *Page) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Parse parses metrics in Prometheus' text format. The result contains a GPU if it has a
// possible SM activity. If its occupancy or its DRAM activity is missing, the SM activity
// is used instead; it is an upper bound of the occupancy. If a GPU has several rows (one
// per pod that uses it), the highest counts.
func Parse(page io.Reader) (map[Key]Reading, error) {
	families, err := parse(page)
	if err != nil {
		return nil, err
	}
	smact, smocc, drama := field(families[fieldSMACT]), field(families[fieldSMOCC]), field(families[fieldDRAMA])
	out := map[Key]Reading{}
	for k, v := range smact {
		r := Reading{SMACT: v, SMOCC: v, DRAMA: v}
		if o, ok := smocc[k]; ok {
			r.SMOCC = o
		}
		if d, ok := drama[k]; ok {
			r.DRAMA = d
		}
		out[k] = r
	}
	return out, nil
}

// parse calls the library's parser and catches its panics. It panics on a nameless row
// after a comment (found by fuzzing, in versions 0.66.1 and 0.70.0). That must not end
// the daemon.
func parse(page io.Reader) (families map[string]*dto.MetricFamily, err error) {
	defer func() {
		if p := recover(); p != nil {
			families, err = nil, fmt.Errorf("it is not in Prometheus' text format: %v", p)
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(page)
}

// field returns one field's value for each GPU.
func field(f *dto.MetricFamily) map[Key]float64 {
	out := map[Key]float64{}
	for _, m := range f.GetMetric() {
		k, ok := keyOf(m)
		v := value(m)
		if !ok || math.IsNaN(v) || v < 0 || v > 1.05 {
			continue
		}
		out[k] = max(out[k], min(1, v))
	}
	return out
}

func value(m *dto.Metric) float64 {
	switch {
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	case m.GetUntyped() != nil:
		return m.GetUntyped().GetValue()
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	}
	return math.NaN()
}

// keyOf returns the GPU of a row.
func keyOf(m *dto.Metric) (Key, bool) {
	k := Key{Instance: -1}
	for _, l := range m.GetLabel() {
		switch l.GetName() {
		case "UUID":
			k.UUID = l.GetValue()
		case "GPU_I_ID":
			n, ok := number(l.GetValue())
			if !ok {
				return k, false
			}
			k.Instance = n
		}
	}
	return k, k.UUID != ""
}

// number parses a GPU instance id; an empty one means none.
func number(s string) (int, bool) {
	if s == "" {
		return -1, true
	}
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > 1000 {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}
