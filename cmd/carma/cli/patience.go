package cli

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"carma/runner/api"
)

// Patience bridges a restart of the daemon: for some time it repeats requests that failed
// because no daemon answered.
type Patience struct {
	limit  time.Duration
	pause  time.Duration
	notice func(format string, args ...any)
	lost   string // text of the notice; by default "lost the daemon"

	since time.Time // time of the first consecutive failure, or zero
}

// NewPatience waits up to a minute. notice informs the user.
func NewPatience(notice func(format string, args ...any)) *Patience {
	return &Patience{limit: time.Minute, pause: 200 * time.Millisecond, notice: notice}
}

// BeginPatience returns the patience for the first answer to a command that waits anyway:
// the command may have begun during a restart of the daemon.
func BeginPatience(notice func(format string, args ...any)) *Patience {
	p := NewPatience(notice)
	p.limit, p.lost = 5*time.Second, "no daemon answers"
	return p
}

// Retry waits and returns nil if the request that failed with err should be repeated,
// otherwise the error to return.
func (p *Patience) Retry(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !Away(err) {
		return err
	}
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
		p.notice("%s; trying again for %s", cmp.Or(p.lost, "lost the daemon"), p.limit)
	}
	if now.Sub(p.since) >= p.limit {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(p.pause):
		return nil
	}
}

// Answered records that the daemon has answered.
func (p *Patience) Answered() {
	if !p.since.IsZero() {
		p.since = time.Time{}
		p.notice("the daemon is back")
	}
}

// Do repeats fn until it gets an answer.
func (p *Patience) Do(ctx context.Context, fn func() error) error {
	for {
		err := fn()
		if !Away(err) {
			p.Answered()
			return err
		}
		if err := p.Retry(ctx, err); err != nil {
			return err
		}
	}
}

// Away reports whether an error means that no daemon answers, or that the daemon is not
// ready yet.
func Away(err error) bool {
	var none *api.NoDaemonError
	var status *api.StatusError
	switch {
	case errors.As(err, &none):
		return true
	case errors.As(err, &status):
		return status.Status == http.StatusBadGateway || status.Status == http.StatusServiceUnavailable || status.Status == http.StatusGatewayTimeout
	}
	return false
}
