package kubernetes

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// jobNews signals that a marked Job, or a pod of one, may have changed. The receiver
// reads all of them, so a repeated signal does no harm.
type jobNews struct {
	begun sync.Once
	news  chan struct{}
}

// JobNews implements [containers.Jobber]. It gets a token at each change, and whenever
// some may have been missed.
func (d *Driver) JobNews() <-chan struct{} {
	d.jobsChanged.begun.Do(func() {
		d.jobsChanged.news = make(chan struct{}, 1)
		for _, namespace := range d.scope {
			at := types.NamespacedName{Namespace: namespace}
			d.tasks.Go(func() { d.watchMarked(func() *rest.Request { return d.jobs(d.batch.Get(), at) }) })
			d.tasks.Go(func() { d.watchMarked(func() *rest.Request { return d.pods(d.core.Get(), at) }) })
		}
	})
	return d.jobsChanged.news
}

// Pauses before a stream that broke is opened again.
const (
	newsAgain   = again
	newsAtMost  = 30 * time.Second
	newsRefused = 2 // how much longer after each failure
)

// watchMarked reads streams of changes of marked objects until the driver is closed.
func (d *Driver) watchMarked(of func() *rest.Request) {
	pause := newsAgain
	for d.ctx.Err() == nil {
		if d.watchOnce(d.ctx, of()) {
			pause = newsAgain
		} else {
			pause = min(pause*newsRefused, newsAtMost)
		}
		poke(d.jobsChanged.news)
		select {
		case <-d.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// watchOnce reads one stream to its end. It returns false if the stream could not be
// opened.
func (d *Driver) watchOnce(ctx context.Context, of *rest.Request) bool {
	events, err := of.VersionedParams(&metav1.ListOptions{Watch: true, LabelSelector: jobLabel}, parameters).Watch(ctx)
	if err != nil {
		return false
	}
	defer events.Stop()
	poke(d.jobsChanged.news)
	for e := range events.ResultChan() {
		if e.Type == watch.Error {
			break
		}
		poke(d.jobsChanged.news)
	}
	return true
}
