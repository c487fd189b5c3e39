package kubernetes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// JobNews implements [containers.Jobber]. It gets a token at each change, and whenever
// some may have been missed.
func (j *jobs) JobNews() <-chan struct{} {
	j.begun.Do(func() {
		j.news = make(chan struct{}, 1)
		for _, namespace := range j.c.ns.scope {
			at := types.NamespacedName{Namespace: namespace}
			j.c.tasks.Go(func() { j.watchMarked(func() *rest.Request { return j.c.jobs(j.c.batch.Get(), at) }) })
			j.c.tasks.Go(func() { j.watchMarked(func() *rest.Request { return j.c.pods(j.c.core.Get(), at) }) })
		}
	})
	return j.news
}

// Pauses before a stream that broke is opened again.
const (
	newsAgain   = again
	newsAtMost  = 30 * time.Second
	newsRefused = 2 // how much longer after each failure
)

// watchMarked reads streams of changes of marked objects until the driver is closed.
func (j *jobs) watchMarked(of func() *rest.Request) {
	pause := newsAgain
	for j.c.ctx.Err() == nil {
		if j.watchOnce(j.c.ctx, of()) {
			pause = newsAgain
		} else {
			pause = min(pause*newsRefused, newsAtMost)
		}
		poke(j.news)
		select {
		case <-j.c.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// watchOnce reads one stream to its end. It returns false if the stream could not be
// opened.
func (j *jobs) watchOnce(ctx context.Context, of *rest.Request) bool {
	events, err := of.VersionedParams(&metav1.ListOptions{Watch: true, LabelSelector: jobLabel}, parameters).Watch(ctx)
	if err != nil {
		return false
	}
	defer events.Stop()
	poke(j.news)
	for e := range events.ResultChan() {
		if e.Type == watch.Error {
			break
		}
		poke(j.news)
	}
	return true
}
