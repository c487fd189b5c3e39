package energy

import (
	"errors"
	"testing"

	"carma/runner/gpu"
)

// meta is a store in memory. It fails to write while full is set.
type meta struct {
	body []byte
	full bool
}

func (m *meta) Meta(string) ([]byte, error) {
	if m.body == nil {
		return nil, errors.New("not found")
	}
	return m.body, nil
}

func (m *meta) SetMeta(_ string, body []byte) error {
	if m.full {
		return errors.New("full")
	}
	m.body = body
	return nil
}

// TestStore: stored accounts of living attempts are there after a restart, also if the first
// write failed. Unreadable accounts are an error, and the count begins again.
func TestStore(t *testing.T) {
	store := &meta{full: true}
	a, err := Open(at(0), map[string]string{"a": "", "b": ""}, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Start(at(0), one, "ann", []string{"a"}, false)
	a.Sample(at(0), shows(10, 100))
	a.Sample(at(60), shows(6010, 100))
	used := a.Joules(one)
	if used == 0 {
		t.Fatal("the attempt has used nothing")
	}
	if a.Store(at(60), store) == nil {
		t.Error("a full store is no error")
	}
	store.full = false
	if err := a.Store(at(61), store); err != nil || store.body == nil {
		t.Errorf("the second time: %v, %q", err, store.body)
	}
	again, err := Open(at(62), map[string]string{"a": "", "b": ""}, store, func(k gpu.AttemptKey) bool { return k == one })
	if err != nil || again.Joules(one) != used {
		t.Errorf("after a restart %g J, before %g J, %v", again.Joules(one), used, err)
	}
	store.body = []byte("nonsense")
	if b, err := Open(at(63), nil, store, nil); err == nil || b == nil {
		t.Errorf("nonsense: %v, %v", b, err)
	}
}
