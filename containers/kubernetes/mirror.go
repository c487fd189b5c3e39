package kubernetes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// mirror keeps the needed part of all objects of one kind. It lists them first, and then reads
// a watch. client-go's Reflector does both. The Reflector resumes a broken watch at the same
// resourceVersion, and lists again if the cluster does not have that version any more.
type mirror[T any] struct {
	what string // name of the reading, for errors
	// keep extracts the needed part of an object.
	keep func(runtime.Object) T

	mu      sync.Mutex
	is      map[string]T // parts by namespace and name
	version uint64       // grows with each change
	full    bool         // all objects were read once
	err     error        // error of the last request, or nil if it succeeded
	news    chan struct{}
	sorted  []T    // parts ordered by name, of the version made
	made    uint64 // 0 before the first sort
}

// The pauses between two requests while the cluster does not answer.
const (
	tryFirst = 250 * time.Millisecond
	tryLast  = 2 * time.Second
)

// run reads until ctx ends. request makes a request for the kind. labels select objects; an
// empty string selects all. example is an object of the kind, and list an empty list.
func (m *mirror[T]) run(ctx context.Context, request func() *rest.Request, labels string, example runtime.Object, list func() runtime.Object) {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = labels
			all := list()
			err := request().VersionedParams(&o, parameters).Do(ctx).Into(all)
			m.answered(err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.Watch = labels, true
			stream, err := request().VersionedParams(&o, parameters).Watch(ctx)
			if o.SendInitialEvents == nil || !apierrors.IsInvalid(err) { // otherwise the Reflector lists the objects
				m.answered(err)
			}
			return stream, err
		},
	}
	cache.NewReflectorWithOptions(source, example, m, cache.ReflectorOptions{
		Name: "carma", Backoff: &wait.Backoff{Duration: tryFirst, Factor: 2, Jitter: 0.2, Steps: 8, Cap: tryLast},
	}).RunWithContext(ctx)
}

// answered records whether the cluster answers.
func (m *mirror[T]) answered(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	m.tell()
}

// tell wakes the callers that wait for the first reading. The caller holds m.mu.
func (m *mirror[T]) tell() {
	if m.news != nil && (m.full || m.err != nil) {
		close(m.news)
		m.news = nil
	}
}

// ready waits until all objects were read once. It returns an error if the cluster does not
// answer, because the kept parts are then out of date.
func (m *mirror[T]) ready(ctx context.Context) error {
	m.mu.Lock()
	for !m.full && m.err == nil {
		if m.news == nil {
			m.news = make(chan struct{})
		}
		news := m.news
		m.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return fail(ctx, m.what, ctx.Err())
		}
		m.mu.Lock()
	}
	err := m.err
	m.mu.Unlock()
	return fail(ctx, m.what, err)
}

// all returns the kept parts, ordered by name, and their version. Callers must not change
// the slice.
func (m *mirror[T]) all() ([]T, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made != m.version || m.made == 0 {
		m.sorted, m.made = make([]T, 0, len(m.is)), m.version
		for _, name := range slices.Sorted(maps.Keys(m.is)) {
			m.sorted = append(m.sorted, m.is[name])
		}
	}
	return m.sorted, m.version
}

// late reports whether not all objects were read yet, or the cluster does not answer.
func (m *mirror[T]) late() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err != nil || !m.full
}

// one returns the kept part of an object; ok is false if the object does not exist or the
// cluster does not answer.
func (m *mirror[T]) one(key string) (kept T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil || !m.full {
		return kept, false
	}
	kept, ok = m.is[key]
	return kept, ok
}

// The following methods are called by the Reflector.

// Add stores a new object.
func (m *mirror[T]) Add(o any) error { return m.Update(o) }

// Update stores the new state of an object.
func (m *mirror[T]) Update(o any) error {
	key, err := cache.MetaNamespaceKeyFunc(o)
	if err != nil {
		return err
	}
	kept := m.keep(o.(runtime.Object))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.is[key] = kept
	m.version++
	return nil
}

// Delete removes an object.
func (m *mirror[T]) Delete(o any) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.is, key)
	m.version++
	return nil
}

// Replace replaces all objects.
func (m *mirror[T]) Replace(all []any, _ string) error {
	is := make(map[string]T, len(all))
	for _, o := range all {
		key, err := cache.MetaNamespaceKeyFunc(o)
		if err != nil {
			return err
		}
		is[key] = m.keep(o.(runtime.Object))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.is, m.full = is, true
	m.version++
	m.tell()
	return nil
}

// Resync does nothing, because readers always read all objects.
func (m *mirror[T]) Resync() error { return nil }
