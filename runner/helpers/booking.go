package helpers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carma/runner/api"
)

// Share is what the helpers of a suite have of the machine.
type Share struct {
	HostMem int64   // bytes
	CPUs    float64 // processors
}

// How says how a share is entered.
type How int

const (
	// Look enters nothing: it only refuses what the machine can never give.
	Look How = iota
	// Ask enters a share if there is room for it now.
	Ask
	// Must enters it anyway: the helpers run.
	Must
)

// FullError says that a share does not fit now. Text is why, for people.
type FullError struct{ Text string }

func (e *FullError) Error() string { return e.Text }

// Machine has the books of the machine that helpers share with tasks.
type Machine interface {
	// Reserved is what is booked for one container of a helper.
	Reserved(*api.Submit) Share
	// Book enters what the helpers of a suite have from now on, instead of what they
	// had; the zero Share: nothing. It is durable when this returns. With Ask the error
	// may be a [FullError].
	Book(ctx context.Context, suite string, s Share, how How) error
	// Follow begins to read what a container uses, by its names in control groups;
	// Forget ends that for all containers of a suite.
	Follow(suite, container, id string)
	Forget(suite string)
}

// shareOf is what is booked for all helpers of a suite.
func (m *Manager) shareOf(s *api.Suite) (all Share) {
	for i := range s.Helpers {
		one, n := m.Machine.Reserved(&s.Helpers[i].Container), max(1, s.Helpers[i].Replicas)
		all.HostMem += one.HostMem * int64(n)
		all.CPUs += one.CPUs * float64(n)
	}
	return all
}

// fullPause is the time between two looks whether there is room on the machine.
const fullPause = time.Second

// book books what a suite has of the machine, and waits until there is room. Helpers
// that were up before this daemon have it already.
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

// unbook gives back what a suite had of the machine.
func (m *Manager) unbook(ctx context.Context, k *kept) error {
	suite := k.key().String()
	m.Machine.Forget(suite)
	if err := m.Machine.Book(ctx, suite, Share{}, Must); err != nil {
		return fmt.Errorf("its share of the machine: %w", err)
	}
	return nil
}

// settle gives back what is booked for suites that are gone: the journal was set back.
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

// Owners are the owners of the suites, by the name under which they are booked.
func (m *Manager) Owners() map[string]Owner {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]Owner{}
	for k, s := range m.suites {
		all[k.String()] = s.Owner
	}
	return all
}
