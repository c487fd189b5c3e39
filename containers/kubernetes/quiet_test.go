package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// quiet is a fake cluster whose pods run and produce no events.
type quiet struct {
	mu   sync.Mutex
	read map[string][]time.Duration // times since began, by pod
	// deleted is the time at which each pod should have ended, or nil if it is not
	// deleted.
	deleted *metav1.Time
	began   time.Time
}

// RoundTrip answers without a network, because waiting for a network does not count as idle
// under testing/synctest.
func (q *quiet) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if r.URL.Query().Get("watch") != "" {
		nothing, end := io.Pipe()
		go func() { <-r.Context().Done(); _ = end.Close() }()
		answer.Body = nothing
		return answer, nil
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	q.mu.Lock()
	q.read[name] = append(q.read[name], time.Since(q.began))
	q.mu.Unlock()
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
	pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion, pod.DeletionTimestamp = namespace, name, types.UID("uid-"+name), "1", q.deleted
	pod.Spec.NodeName, pod.Annotations = "node-1", map[string]string{manifest.StopKey: manifest.Stopped}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	b, err := json.Marshal(pod)
	answer.Body = io.NopCloser(strings.NewReader(string(b)))
	return answer, err
}

// waits starts n calls of Wait for pods of a quiet cluster. They end with the driver.
func (q *quiet) waits(t *testing.T, n int) (d *Driver, ended chan error) {
	q.read, q.began = map[string][]time.Duration{}, time.Now()
	d, err := newDriver(Options{}, namespace, &rest.Config{Host: "http://quiet", Transport: q})
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, n)
	for i := range n {
		name := fmt.Sprint("p", i)
		go func() {
			for { // with a timeout, again and again, like a daemon
				ctx, cancel := context.WithTimeout(d.c.ctx, time.Minute)
				_, err := d.Wait(ctx, "uid-"+name+"."+namespace+"/"+name)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					ended <- err
					return
				}
			}
		}()
	}
	return d, ended
}

// TestQuietReads checks that pods without events are read in turn, at most ten per second for
// any number of waiters. If there are few waiters, each pod is read as often as before.
func TestQuietReads(t *testing.T) {
	for _, n := range []int{5, 1000} {
		synctest.Test(t, func(t *testing.T) {
			q := &quiet{}
			d, ended := q.waits(t, n)
			const first, all = time.Minute, 20 * time.Minute // the watch opens first
			time.Sleep(all)
			_ = d.Close()
			for range n {
				<-ended
			}
			reads, turn := 0, 2*maxQuiet+time.Duration(n)*quietEvery // a timeout of Wait may come in between
			for name, at := range q.read {
				last := first
				for _, when := range append(at, all) {
					switch {
					case when < first:
						continue
					case when-last > turn:
						t.Errorf("of %d, %s is not read from %s to %s", n, name, last, when)
					case when < all && last > first && when-last < maxQuiet:
						t.Errorf("of %d, %s is read at %s and %s", n, name, last, when)
					}
					if last = when; when < all {
						reads++
					}
				}
			}
			if most := int((all - first) / quietEvery); reads > most || len(q.read) != n {
				t.Errorf("%d of %d pods are read %d times, want %d at most", len(q.read), n, reads, most)
			}
			t.Logf("%d pods: %d reads in %s", n, reads, all-first)
		})
	}
}

// TestLostAmongMany checks that Wait notices in time that a pod has passed its deadline and is
// lost, even if too many others wait for their turn to read. The pod is read before it counts
// as lost.
func TestLostAmongMany(t *testing.T) {
	for _, in := range []time.Duration{10 * time.Second, 50 * time.Second} { // within one call of Wait, and between two
		synctest.Test(t, func(t *testing.T) {
			const n = 1000
			due := metav1.NewTime(time.Now().Truncate(time.Second).Add(in))
			q := &quiet{deleted: &due}
			d, ended := q.waits(t, n)
			for range n {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			if took := time.Since(due.Time); took > manifest.LostAfter+maxQuiet {
				t.Errorf("due after %s, the last is lost after %s", in, took)
			}
			for name, at := range q.read {
				if last := q.began.Add(at[len(at)-1]); last.Before(due.Add(manifest.LostAfter)) {
					t.Errorf("%s was read last at %s", name, at[len(at)-1])
				}
			}
			_ = d.Close()
		})
	}
}

// TestStuckAmongMany checks that a start that makes no progress is given up in time, even if it
// never gets its turn to read the pod.
func TestStuckAmongMany(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	d := c.driver(t, Options{ClaimPatience: 100 * time.Millisecond})
	defer d.Close()
	d.watch.hints.turns.every = time.Hour
	d.watch.hints.turns.ask() // takes the turn for an hour
	all := gpuTask("all")
	all.Command, all.GPUMemory = []string{"block:0"}, 80<<30
	begin(t, d, all)
	id, err := d.Create(t.Context(), gpuTask("more"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if fault, ok := errors.AsType[*containers.StartFault](d.Start(ctx, id)); !ok || fault.Code != "gpu-taken" {
		t.Errorf("%+v", fault)
	}
}
