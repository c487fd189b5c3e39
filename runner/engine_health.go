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

// engine watches whether the container engine answers and, as far as that can
// be seen from outside, whether it can start containers. Safe for concurrent
// use.
type engine struct {
	driver containers.Driver
	log    zerolog.Logger

	mu    sync.Mutex
	up    bool   // the engine answers
	why   string // why the engine is down or can start nothing, or ""
	info  containers.Engine
	since chan struct{} // closed when the engine answers, replaced when it does not
	kick  chan struct{} // a token makes watch probe the engine now
	away  time.Time     // when the engine last did not answer, or zero
	// refused counts the calls that an engine refuses although it answers, each refused at
	// least refusedAfter times; refusal is the text of the last one.
	refused int
	refusal string
}

func newEngine(d containers.Driver, log zerolog.Logger) *engine {
	return &engine{driver: d, log: log, since: make(chan struct{}), kick: make(chan struct{}, 1)}
}

const (
	pingEvery     = 5 * time.Second
	pingEverySick = 2 * time.Second
	pingEveryDown = 250 * time.Millisecond
	pingLimit     = 10 * time.Second
	// refusedAfter is the number of refusals of one call after which an engine that answers
	// counts as down.
	refusedAfter = 12
)

// probe asks the engine once and stores the answer.
func (e *engine) probe(ctx context.Context) (up bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	info, err := e.driver.Ping(ctx)
	ill := ""
	if err == nil {
		ill = e.illness(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.up
	e.up, e.why = err == nil, ill
	if err != nil {
		e.why = fmt.Sprintf("the container engine (%s) does not answer: %v%s%s", e.where(), err, toMend, e.remedy())
		e.away = time.Now()
		if was {
			e.since = make(chan struct{})
		}
		return false, e.why
	}
	e.info = info
	if !was {
		close(e.since)
	}
	if e.why == "" && e.refused > 0 {
		e.why = fmt.Sprintf("the container engine (%s) answers, and takes no orders: %s%s%s", e.where(), e.refusal, toMend, e.remedy())
	}
	return e.why == "", e.why
}

// illness returns why the engine can start nothing although it answers, or "" if the
// engine's driver finds nothing.
func (e *engine) illness(ctx context.Context) string {
	c, ok := able[containers.Checker](e.driver)
	if !ok {
		return ""
	}
	if f := c.Check(ctx); f != nil {
		return fmt.Sprintf("the container engine (%s) can start nothing: %s%s%s", e.driver.Name(), f.Cause, toMend, f.Remedy)
	}
	return ""
}

// toMend joins a problem and its fix.
const toMend = "; to mend it: "

// where names the engine and its address.
func (e *engine) where() string {
	if a, ok := able[containers.Advised](e.driver); ok && a.Address() != "" {
		return e.driver.Name() + " at " + a.Address()
	}
	return e.driver.Name()
}

// remedy returns the fix for an engine that does not answer.
func (e *engine) remedy() string {
	a, ok := able[containers.Advised](e.driver)
	if !ok {
		return "start " + e.driver.Name()
	}
	advice := a.Advice()
	if advice.Mend != "" {
		return advice.Mend
	}
	return fmt.Sprintf("systemctl start %s, or set %s to its address", advice.Service, advice.Setting)
}

// watch probes the engine until ctx ends, and reports every change.
func (e *engine) watch(ctx context.Context, changed func(up bool, why string)) {
	was, _ := e.status()
	for {
		every := pingEvery
		switch {
		case was:
		case e.answers():
			every = pingEverySick
		default:
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
			changed(up, why)
		}
		was = up
	}
}

// status returns whether containers can be started, as far as is known, and why not.
func (e *engine) status() (up bool, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up && e.why == "", e.why
}

func (e *engine) version() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.up {
		return ""
	}
	return e.info.Version
}

// found returns the engine's last answer about itself.
func (e *engine) found() containers.Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

// answered waits until the engine has answered once.
func (e *engine) answered(ctx context.Context) error {
	_, err := e.retry(ctx, func() error {
		if e.found().Version != "" {
			return nil
		}
		_, why := e.probe(ctx)
		if e.found().Version == "" {
			return fmt.Errorf("%w: %s", containers.ErrUnavailable, why)
		}
		return nil
	})
	return err
}

// retry calls f until it succeeds, fails for another reason than the engine not answering,
// or ctx ends. outages counts how often the engine did not answer.
func (e *engine) retry(ctx context.Context, f func() error) (outages int, err error) {
	call := refusal{e: e}
	defer call.over()
	for {
		err := call.try(f)
		if err == nil || ctx.Err() != nil || !errors.Is(err, containers.ErrUnavailable) {
			return outages, err
		}
		outages++
		e.mu.Lock()
		e.away = time.Now()
		e.mu.Unlock()
		if e.answers() {
			call.refused(err.Error())
		}
		e.look()
		select { // no faster than this, even if the engine seems to be up
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

// awayAfter reports whether the engine did not answer at some time after t.
func (e *engine) awayAfter(t time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.away.After(t)
}

// look makes watch probe the engine at once.
func (e *engine) look() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

func (e *engine) answers() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up
}

// refusal is a call that an engine may refuse although it answers, for example
// because the containerd under it is gone.
type refusal struct {
	e       *engine
	times   int
	counted bool // the engine counts it in refused; guarded by e.mu
}

// acceptedAfter is the time after which a running call counts as accepted: a call that
// follows a container lasts as long as the container.
const acceptedAfter = pingLimit

// try calls f.
func (r *refusal) try(f func() error) error {
	if r.times >= refusedAfter {
		defer time.AfterFunc(acceptedAfter, r.over).Stop()
	}
	return f()
}

// refused counts a refusal. said is its text.
func (r *refusal) refused(said string) {
	if r.times++; r.times < refusedAfter {
		return
	}
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if !r.counted {
		r.counted = true
		r.e.refused++
		r.e.refusal = said
	}
}

// over ends the refusals of the call, and no longer counts it among the engine's refused
// calls.
func (r *refusal) over() {
	r.e.mu.Lock()
	was := r.counted
	if was {
		r.counted = false
		r.e.refused--
	}
	r.e.mu.Unlock()
	if was {
		r.e.look()
	}
}

// insist calls f until it succeeds or ctx ends, whatever the error. It serves calls that
// must not be given up while the engine has problems.
func (e *engine) insist(ctx context.Context, f func() error) error {
	for pause := pingEveryDown; ; pause = min(2*pause, insistAtMost) {
		_, err := e.retry(ctx, f)
		if err == nil || ctx.Err() != nil {
			return err
		}
		e.log.Warn().Err(err).Msg("the container engine refuses a call that must succeed; it is asked again")
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// insistAtMost is the longest pause between two tries.
const insistAtMost = 30 * time.Second
