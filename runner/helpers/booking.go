package helpers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carma/runner/api"
)

// Share is the part of the machine allocated to the helpers of a suite.
type Share struct {
	HostMem int64   // bytes
	CPUs    float64 // processors
}

// How is the way in which [Machine.Book] allocates a share.
type How int

const (
	// Look allocates nothing, and only refuses a share that the machine can never give.
	Look How = iota
	// Ask allocates a share if there is room for it now.
	Ask
	// Must allocates a share in any case, because the helpers already run.
	Must
)

// FullError means that a share does not fit now. Text is the reason, for people.
type FullError struct{ Text string }

func (e *FullError) Error() string { return e.Text }

// Machine allocates the machine's resources, which helpers share with tasks.
type Machine interface {
	// Reserved returns the share to allocate for one container of a helper.
	Reserved(*api.Submit) Share
	// Book replaces the allocation of a suite's helpers; the zero Share releases it. The
	// change is durable when Book returns. With Ask the error may be a [FullError].
	Book(ctx context.Context, suite string, s Share, how How) error
	// Follow starts reading a container's memory use, by its names in control groups. Forget
	// ends this for all containers of a suite.
	Follow(suite, container, id string)
	Forget(suite string)
}

// shareOf returns the share to allocate for all helpers of a suite.
func (m *Manager) shareOf(s *api.Suite) (all Share) {
	for i := range s.Helpers {
		one, n := m.Machine.Reserved(&s.Helpers[i].Container), max(1, s.Helpers[i].Replicas)
		all.HostMem += one.HostMem * int64(n)
		all.CPUs += one.CPUs * float64(n)
	}
	return all
}

// fullPause is the time between two checks for room on the machine.
const fullPause = time.Second

// book allocates a suite's share of the machine, and waits until there is room. Helpers
// that ran before this daemon started have an allocation already.
func (m *Manager) book(ctx context.Context, s *suite, k *kept, fresh bool) error {
	how := Must
	if fresh {
		how = Ask
	}
	for {
		err := m.Machine.Book(ctx, k.key().String(), m.shareOf(&k.Suite), how)
		var full *FullError
		if !errors.As(err, &full) {
			return err
		}
		m.mu.Lock()
		if text := "waiting for the machine: " + full.Text; s.phase == starting && s.reason != text {
			s.tell(starting, text)
		}
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(fullPause):
		}
	}
}

// unbook releases a suite's allocation.
func (m *Manager) unbook(ctx context.Context, k *kept) error {
	suite := k.key().String()
	m.Machine.Forget(suite)
	if err := m.Machine.Book(ctx, suite, Share{}, Must); err != nil {
		return fmt.Errorf("its share of the machine: %w", err)
	}
	return nil
}

// settle releases the allocations of suites that no longer exist because the journal was
// replaced by an older copy.
func (m *Manager) settle(ctx context.Context) {
	names := slices.Clone(m.Booked)
	m.mu.Lock()
	for k := range m.suites {
		names = slices.DeleteFunc(names, func(n string) bool { return n == k.String() })
	}
	m.mu.Unlock()
	for _, name := range names {
		if err := m.Machine.Book(ctx, name, Share{}, Must); err != nil {
			m.Log.Warn().Err(err).Str("suite", name).Msg("what a suite that is gone had of the machine stays booked until the next start")
		}
	}
}

// Owners returns the owners of the suites, by the name of their allocation.
func (m *Manager) Owners() map[string]Owner {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]Owner{}
	for k, s := range m.suites {
		all[k.String()] = s.Owner
	}
	return all
}
