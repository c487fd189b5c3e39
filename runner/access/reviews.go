package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"carma/containers"
	"carma/runner/request"
)

// Lifetimes of the cached answers of the cluster about users. A revoked token or right
// works for at most this time.
const (
	tokenGood, tokenBad   = 30 * time.Second, 5 * time.Second
	accessGood, accessBad = 10 * time.Second, 5 * time.Second
	// reviewsMost limits the cached answers, reviewsAtOnce the concurrent questions to the
	// cluster.
	reviewsMost, reviewsAtOnce = 10_000, 16
	// reviewWithin is the longest time that a review waits for its turn and its answer.
	reviewWithin = 10 * time.Second
)

// reviews asks the cluster about users and caches the answers for some seconds.
type reviews struct {
	of    containers.Reviewer
	now   func() time.Time
	asked chan struct{} // holds a token for each question in progress

	mu     sync.Mutex
	tokens map[[sha256.Size]byte]reviewed[containers.Subject]
	access map[accessKey]reviewed[bool]
}

type reviewed[T any] struct {
	value T
	err   error
	until time.Time
}

// accessKey is a user and the access to check.
type accessKey struct {
	who  string // name, id and groups
	what containers.Access
}

func newReviews(of containers.Reviewer, now func() time.Time) *reviews {
	return &reviews{
		of: of, now: now, asked: make(chan struct{}, reviewsAtOnce),
		tokens: map[[sha256.Size]byte]reviewed[containers.Subject]{}, access: map[accessKey]reviewed[bool]{},
	}
}

// forget drops all cached answers.
func (v *reviews) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.tokens)
	clear(v.access)
}

// whose returns the user of the cluster that a token belongs to. The error is a
// [request.Error].
func (v *reviews) whose(ctx context.Context, token string) (containers.Subject, error) {
	key := sha256.Sum256([]byte(token))
	got := remembered(v, v.tokens, key)
	if got == nil {
		s, err := question(ctx, v, func(ctx context.Context) (containers.Subject, error) { return v.of.Review(ctx, token) })
		if err != nil && !errors.Is(err, containers.ErrToken) {
			return s, clusterSilent(err)
		}
		got = &reviewed[containers.Subject]{s, err, v.now().Add(tokenGood)}
		if err != nil {
			got.until = v.now().Add(tokenBad)
		}
		remember(v, v.tokens, key, *got)
	}
	if got.err != nil {
		why := strings.TrimPrefix(got.err.Error(), containers.ErrToken.Error()+": ")
		return got.value, request.Errorf(401, "the cluster does not take your token: %s; kubectl auth whoami tests the kubeconfig that it comes from", why)
	}
	return got.value, nil
}

// may reports whether a user may do something. An error is a [request.Error].
func (v *reviews) may(ctx context.Context, s *containers.Subject, what containers.Access) (bool, error) {
	key := accessKey{strings.Join(append([]string{s.Name, s.ID}, s.Groups...), "\x00"), what}
	if got := remembered(v, v.access, key); got != nil {
		return got.value, nil
	}
	yes, err := question(ctx, v, func(ctx context.Context) (bool, error) { return v.of.Allowed(ctx, *s, what) })
	if err != nil {
		return false, clusterSilent(err)
	}
	last := accessBad
	if yes {
		last = accessGood
	}
	remember(v, v.access, key, reviewed[bool]{yes, nil, v.now().Add(last)})
	return yes, nil
}

func clusterSilent(err error) error {
	return request.Errorf(503, "the cluster does not say who you are and what you may do: %v; nothing is lost, try again", err)
}

// question calls put as soon as fewer than reviewsAtOnce questions are in progress.
func question[T any](ctx context.Context, v *reviews, put func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewWithin)
	defer cancel()
	select {
	case v.asked <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	defer func() { <-v.asked }()
	return put(ctx)
}

func remembered[K comparable, T any](v *reviews, all map[K]reviewed[T], key K) *reviewed[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if got, ok := all[key]; ok && v.now().Before(got.until) {
		return &got
	}
	return nil
}

func remember[K comparable, T any](v *reviews, all map[K]reviewed[T], key K, got reviewed[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(all) >= reviewsMost {
		now := v.now()
		maps.DeleteFunc(all, func(_ K, old reviewed[T]) bool { return !now.Before(old.until) })
		if len(all) >= reviewsMost {
			clear(all)
		}
	}
	all[key] = got
}
