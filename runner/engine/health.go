package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"carma/containers"

	"github.com/rs/zerolog"
)

// Health watches whether the container engine answers and, as far as that can
// be seen from outside, whether it can start containers. Safe for concurrent
// use.
type Health struct {
	driver containers.Driver
	log    zerolog.Logger

	mu    sync.Mutex
	up    bool   // the engine answers
	why   string // why the engine is down or can start nothing, or ""
	info  containers.Engine
	since chan struct{} // closed when the engine answers, replaced when it does not
	kick  chan struct{} // a token makes Watch probe the engine now
	away  time.Time     // when the engine last did not answer, or zero
	// refused counts the calls that an engine refuses although it answers, each refused at
	// least refusedAfter times; refusal is the text of the last one.
	refused int
	refusal string
}

// New returns the health of an engine that was not asked yet.
func New(d containers.Driver, log zerolog.Logger) *Health {
	return &Health{driver: d, log: log, since: make(chan struct{}), kick: make(chan struct{}, 1)}
}

const (
	// PingEvery is the time between two probes of an engine that can start containers.
	PingEvery     = 5 * time.Second
	pingEverySick = 2 * time.Second
	pingEveryDown = 250 * time.Millisecond
	pingLimit     = 10 * time.Second
	// refusedAfter is the number of refusals of one call after which an engine that answers
	// counts as down.
	refusedAfter = 12
)

// Probe asks the engine once and stores the answer.
func (e *Health) Probe(ctx context.Context) (up bool, why string) {
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
		e.why = fmt.Sprintf("the container engine (%s) does not answer: %v%s%s", e.where(), err, ToFix, e.remedy())
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
		e.why = fmt.Sprintf("the container engine (%s) answers, and takes no orders: %s%s%s", e.where(), e.refusal, ToFix, e.remedy())
	}
	return e.why == "", e.why
}

// illness returns why the engine can start nothing although it answers, or "" if the
// engine's driver finds nothing.
func (e *Health) illness(ctx context.Context) string {
	c, ok := As[containers.Checker](e.driver)
	if !ok {
		return ""
	}
	if f := c.Check(ctx); f != nil {
		return fmt.Sprintf("the container engine (%s) can start nothing: %s%s%s", e.driver.Name(), f.Cause, ToFix, f.Remedy)
	}
	return ""
}

// ToFix joins a problem and its fix.
const ToFix = "; to mend it: "

// where names the engine and its address.
func (e *Health) where() string {
	if a, ok := As[containers.Advised](e.driver); ok && a.Address() != "" {
		return e.driver.Name() + " at " + a.Address()
	}
	return e.driver.Name()
}

// remedy returns the fix for an engine that does not answer.
func (e *Health) remedy() string {
	a, ok := As[containers.Advised](e.driver)
	if !ok {
		return "start " + e.driver.Name()
	}
	advice := a.Advice()
	if advice.Fix != "" {
		return advice.Fix
	}
	return fmt.Sprintf("systemctl start %s, or set %s to its address", advice.Service, advice.Setting)
}

// Watch probes the engine until ctx ends, and reports every change.
func (e *Health) Watch(ctx context.Context, changed func(up bool, why string)) {
	was, _ := e.Status()
	for {
		every := PingEvery
		switch {
		case was:
		case e.Answers():
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
		up, why := e.Probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if up != was {
			changed(up, why)
		}
		was = up
	}
}

// Status returns whether containers can be started, as far as is known, and why not.
func (e *Health) Status() (up bool, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up && e.why == "", e.why
}

// Version returns the engine's version, or "" if the engine does not answer.
func (e *Health) Version() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.up {
		return ""
	}
	return e.info.Version
}

// Info returns the engine's last answer about itself.
func (e *Health) Info() containers.Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

// WaitAnswer waits until the engine has answered once.
func (e *Health) WaitAnswer(ctx context.Context) error {
	_, err := e.Retry(ctx, func() error {
		if e.Info().Version != "" {
			return nil
		}
		_, why := e.Probe(ctx)
		if e.Info().Version == "" {
			return fmt.Errorf("%w: %s", containers.ErrUnavailable, why)
		}
		return nil
	})
	return err
}

// Retry calls f until it succeeds, fails for another reason than the engine not answering,
// or ctx ends. outages counts how often the engine did not answer.
func (e *Health) Retry(ctx context.Context, f func() error) (outages int, err error) {
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
		if e.Answers() {
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

// Import brings an image of carma's own onto the machine.
func (e *Health) Import(ctx context.Context, tar []byte) error {
	maker, ok := As[containers.Importer](e.driver)
	if !ok {
		return fmt.Errorf("%w: driver %s cannot make carma's own images", containers.ErrInvalid, e.driver.Name())
	}
	_, err := e.Retry(ctx, func() error {
		return Within(ctx, CreateLimit, "make image", func(ctx context.Context) error {
			_, err := maker.Import(ctx, bytes.NewReader(tar))
			return err
		})
	})
	return err
}

// SilentAfter reports whether the engine did not answer at some time after t.
func (e *Health) SilentAfter(t time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.away.After(t)
}

// look makes Watch probe the engine at once.
func (e *Health) look() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// Answers reports whether the engine answered the last probe.
func (e *Health) Answers() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up
}

// Insist calls f until it succeeds or ctx ends, whatever the error. It serves calls that
// must not be given up while the engine has problems.
func (e *Health) Insist(ctx context.Context, f func() error) error {
	for pause := pingEveryDown; ; pause = min(2*pause, insistAtMost) {
		_, err := e.Retry(ctx, f)
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
