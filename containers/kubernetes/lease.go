package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// Only one daemon works in a namespace: the holder of the Lease.
const (
	leaseName = "carma-daemon"
	// leaseFor is the time for which a holder keeps a Lease without renewing it.
	leaseFor = 15 * time.Second
	// renewEvery is the time between two renewals.
	renewEvery = 4 * time.Second
)

// lease changes or makes a Lease. change returns false if the Lease must not be written.
func (c *client) lease(ctx context.Context, what, name string, change func(*coordinationv1.Lease) bool) error {
	_, err := c.writeLease(ctx, what, name, change)
	return err
}

// writeLease does the same as lease, and returns the written Lease, or nil if nothing was
// written.
func (c *client) writeLease(ctx context.Context, what, name string, change func(*coordinationv1.Lease) bool) (*coordinationv1.Lease, error) {
	for {
		l := &coordinationv1.Lease{}
		err := c.coordination.Get().Namespace(c.ns.Own()).Resource("leases").Name(name).Do(ctx).Into(l)
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return nil, fail(ctx, what, err)
		}
		if missing {
			l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		if !change(l) {
			return nil, nil
		}
		written, err := c.sendLease(ctx, l)
		if err == nil {
			return written, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return nil, fail(ctx, what, err)
		}
		if err := pause(ctx, what); err != nil {
			return nil, err
		}
	}
}

// sendLease updates a Lease if nobody has changed it since it was read, or makes a Lease that
// does not exist. It returns the Lease that the cluster has then.
func (c *client) sendLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	send := c.coordination.Put().Name(l.Name)
	if l.ResourceVersion == "" {
		send = c.coordination.Post()
	}
	written := &coordinationv1.Lease{}
	err := send.Namespace(c.ns.Own()).Resource("leases").Body(l).Do(ctx).Into(written)
	return written, err
}

// election renews the Lease of the daemon's namespace, and stores its holder.
type election struct {
	c *client

	mu    sync.Mutex
	wants bool      // [election.Hold] was called
	until time.Time // end of the time for which this daemon holds it
	other string    // the holder
}

// Hold waits until this daemon has the namespace's Lease, and renews it until the driver is
// closed. who names the daemon. A restarted daemon with the same name gets the Lease at once.
// Hold calls waiting once, with the name of the daemon that has the Lease. It calls lost when
// another daemon has taken the Lease. While the Lease is only not renewed in time, nothing is
// started, see [Driver.Check].
func (e *election) Hold(ctx context.Context, who string, waiting func(other string), lost func(other string)) error {
	e.mu.Lock()
	e.wants = true
	e.mu.Unlock()
	var seen coordinationv1.LeaseSpec
	var since time.Time
	told := false
	for {
		other, err := e.renew(ctx, who, func(l *coordinationv1.LeaseSpec) bool {
			// The clock of another machine may be wrong, so the time without a renewal is measured with
			// this machine's clock.
			if since.IsZero() || !l.RenewTime.Equal(seen.RenewTime) || *l.HolderIdentity != *seen.HolderIdentity {
				seen, since = *l.DeepCopy(), time.Now()
			}
			return time.Since(since) > leaseFor
		})
		if err != nil {
			return err
		}
		if other == "" {
			break
		}
		if !told {
			told = true
			waiting(other)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(renewEvery / 4):
		}
	}
	e.c.tasks.Go(func() { e.keepLease(who, lost) })
	return nil
}

// keepLease renews the Lease until the driver is closed or another daemon has the Lease.
func (e *election) keepLease(who string, lost func(string)) {
	for {
		select {
		case <-e.c.ctx.Done():
			return
		case <-time.After(renewEvery):
		}
		ctx, cancel := context.WithTimeout(e.c.ctx, renewEvery)
		other, err := e.renew(ctx, who, func(*coordinationv1.LeaseSpec) bool { return false })
		cancel()
		if err == nil && other != "" {
			lost(other)
			return
		}
	}
}

// renew takes the Lease if it is free, held by this daemon or expired. Otherwise it returns the
// holder as other.
func (e *election) renew(ctx context.Context, who string, may func(*coordinationv1.LeaseSpec) bool) (other string, err error) {
	began := time.Now()
	err = e.c.lease(ctx, "take the Lease "+leaseName, leaseName, func(l *coordinationv1.Lease) bool {
		other = ""
		if h := l.Spec.HolderIdentity; h != nil && *h != "" && *h != who && !may(&l.Spec) {
			other = *h
			return false
		}
		now, seconds := metav1.NewMicroTime(time.Now()), int32(leaseFor.Seconds())
		l.Labels = map[string]string{manifest.ManagedBy: manifest.Owner}
		l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &who, &now, &seconds
		return true
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.other = other
		if other == "" {
			e.until = began.Add(leaseFor)
		} else {
			e.until = time.Time{}
		}
	}
	return other, err
}

// Release releases the Lease, so that another daemon need not wait.
func (e *election) Release(ctx context.Context, who string) error {
	e.mu.Lock()
	e.until = time.Time{}
	e.mu.Unlock()
	free := ""
	return e.c.lease(ctx, "give back the Lease "+leaseName, leaseName, func(l *coordinationv1.Lease) bool {
		if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != who {
			return false
		}
		l.Spec.HolderIdentity = &free
		return true
	})
}

// Check returns a fault if this daemon does not hold the Lease, because then it may start
// nothing. It implements [containers.Checker].
func (e *election) Check(context.Context) *containers.StartFault {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.wants || time.Now().Before(e.until) {
		return nil
	}
	cause := "the Lease " + leaseName + " in namespace " + e.c.ns.Own() + " could not be renewed in time"
	if e.other != "" {
		cause = fmt.Sprintf("another daemon, %s, has the Lease %s in namespace %s", e.other, leaseName, e.c.ns.Own())
	}
	return &containers.StartFault{Scope: containers.ScopeEngine, Code: "lease", Cause: cause, Remedy: "one daemon works in a namespace; stop one of them, or use another --kubernetes-namespace", Text: cause}
}
