package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"carma/containers"

	"github.com/rs/zerolog"
)

// engine watches whether the container engine answers.
type engine struct {
	driver containers.Driver
	log    zerolog.Logger

	mu    sync.Mutex
	up    bool
	why   string // while it is down
	info  containers.Engine
	since chan struct{} // closed when it comes up; replaced when it goes down
	kick  chan struct{} // look now
}

func newEngine(d containers.Driver, log zerolog.Logger) *engine {
	return &engine{driver: d, log: log, since: make(chan struct{}), kick: make(chan struct{}, 1)}
}

const (
	pingEvery     = 5 * time.Second
	pingEveryDown = 250 * time.Millisecond
	pingLimit     = 10 * time.Second
)

// probe asks the engine once and remembers the answer.
func (e *engine) probe(ctx context.Context) (up bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	info, err := e.driver.Ping(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.up
	e.up, e.why = err == nil, ""
	if err != nil {
		e.why = fmt.Sprintf("the container engine (%s) does not answer: %v", e.driver.Name(), err)
		if was {
			e.since = make(chan struct{})
		}
		return false, e.why
	}
	e.info = info
	if !was {
		close(e.since)
	}
	return true, ""
}

// watch reports every change until ctx ends.
func (e *engine) watch(ctx context.Context, changed func(up bool, why string)) {
	was, _ := e.status()
	for {
		every := pingEvery
		if !was {
			every = pingEveryDown
		}
		select {
		case <-ctx.Done():
			return
		case <-e.kick:
		case <-time.After(every):
		}
		up, why := e.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if up != was {
			if up {
				e.log.Info().Msg("the container engine answers again")
			} else {
				e.log.Error().Str("reason", why).Msg("the container engine does not answer; tasks wait")
			}
			changed(up, why)
		}
		was = up
	}
}

func (e *engine) status() (up bool, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up, e.why
}

func (e *engine) version() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.up {
		return ""
	}
	return e.info.Version
}

// found is what the engine said of itself when it answered last.
func (e *engine) found() containers.Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

// answered returns when the engine has answered once.
func (e *engine) answered(ctx context.Context) error {
	_, err := e.retry(ctx, func() error {
		if e.found().Version != "" {
			return nil
		}
		if up, why := e.probe(ctx); !up {
			return fmt.Errorf("%w: %s", containers.ErrUnavailable, why)
		}
		return nil
	})
	return err
}

// retry calls f until it succeeds, fails for another reason than the engine
// being away, or ctx ends. outages counts how often the engine was away.
func (e *engine) retry(ctx context.Context, f func() error) (outages int, err error) {
	for {
		err := f()
		if err == nil || ctx.Err() != nil || !errors.Is(err, containers.ErrUnavailable) {
			return outages, err
		}
		outages++
		select { // the watcher looks at once
		case e.kick <- struct{}{}:
		default:
		}
		select { // not faster than this, even if it seems to be up
		case <-time.After(pingEveryDown):
		case <-ctx.Done():
			return outages, ctx.Err()
		}
		e.mu.Lock()
		back := e.since
		e.mu.Unlock()
		select {
		case <-back:
		case <-ctx.Done():
			return outages, ctx.Err()
		}
	}
}

// insist calls f until it succeeds or ctx ends, whatever the error: for what
// must not be given up while the engine is in trouble.
func (e *engine) insist(ctx context.Context, f func() error) error {
	for pause := pingEveryDown; ; pause = min(2*pause, insistAtMost) {
		_, err := e.retry(ctx, f)
		if err == nil || ctx.Err() != nil {
			return err
		}
		e.log.Warn().Err(err).Msg("the container engine refuses what has to be; it is asked again")
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// insistAtMost is the longest pause between two tries.
const insistAtMost = 30 * time.Second
