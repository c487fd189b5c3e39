package booking

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"carma/estimator"
	environments "carma/estimator/environment"
)

// remembered is the number of estimates that a memo keeps.
const remembered = 64

// memo caches the latest estimates. Most tasks of an array have equal queries, and
// simulating a training step of a large model takes some milliseconds. A memo is safe for
// concurrent use.
type memo struct {
	mu   sync.Mutex
	by   map[memoKey]estimator.Estimate
	keys []memoKey // oldest first
}

// memoKey contains the hash of a query and the environment of the estimate.
type memoKey struct {
	environment *environments.Environment
	query       [32]byte
}

// estimate returns the cached estimate of an equal query, or calls ask. Errors are not
// cached.
func (m *memo) estimate(env *environments.Environment, q estimator.Query, ask func(estimator.Query) (estimator.Estimate, error)) (estimator.Estimate, error) {
	if q.Model == "" || q.Declared > 0 || q.Network != nil { // fast, or each query occurs once
		return ask(q)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return ask(q)
	}
	key := memoKey{env, sha256.Sum256(text)}
	m.mu.Lock()
	e, known := m.by[key]
	m.mu.Unlock()
	if known {
		return e, nil
	}
	if e, err = ask(q); err != nil {
		return e, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[memoKey]estimator.Estimate{}
	}
	if _, known := m.by[key]; !known {
		m.keys = append(m.keys, key)
	}
	m.by[key] = e
	if len(m.keys) > remembered {
		delete(m.by, m.keys[0])
		m.keys = m.keys[1:]
	}
	return e, nil
}
