package runner

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"carma/runner/web"
)

// TestPageViewers measures the CPU use of a daemon with 16 GPUs, 500 tasks and ten open pages,
// while the memory use of all running tasks changes each second. The result is CPU time divided
// by wall-clock time. The readers are in the same process and only read. docs/monitoring.md has
// figures; make test-page measures for longer and without the race detector.
func TestPageViewers(t *testing.T) {
	long(t)
	long, most := 4*time.Second, 0.05
	if raceDetector { // it takes some ten times as long
		most = 0.6
	} else {
		long = 20 * time.Second
	}
	l := newLab(t, 16, 500)
	alone, _ := l.watched(0, long)
	with, bytes := l.watched(10, long)
	t.Logf("a core: %.1f %% without pages, %.1f %% with ten, %.0f kB/s to each", 100*alone, 100*with, bytes/10/1000)
	if with-alone > most || bytes == 0 {
		t.Errorf("ten pages take %.1f %% of a core, and at most %.0f %% is right", 100*(with-alone), 100*most)
	}
}

// watched returns the CPU use of the process in cores, and the bytes per second that all
// viewers together receive.
func (l *lab) watched(viewers int, long time.Duration) (core, bytes float64) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), long+2*time.Second)
	defer cancel()
	var all sync.WaitGroup
	var read atomic.Int64
	for range viewers {
		v := l.visit(web.User{Name: "root"}, false)
		jar := v.http.Jar
		all.Go(func() {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", l.port)
			if err != nil {
				l.t.Error(err)
				return
			}
			defer context.AfterFunc(ctx, func() { c.Close() })()
			cookie := jar.Cookies(l.url())[0]
			io.WriteString(c, "GET /v1/live/events HTTP/1.1\r\nHost: "+l.port+"\r\nCookie: "+cookie.String()+"\r\nCarma-Key: "+v.key+"\r\n\r\n")
			buf := make([]byte, 64<<10)
			for err == nil {
				var n int
				n, err = c.Read(buf)
				read.Add(int64(n))
			}
		})
	}
	time.Sleep(time.Second)
	was, then, begun := spentCPU(), read.Load(), time.Now()
	for turn := 0; time.Since(begun) < long; turn++ {
		l.sample(16, turn)
		time.Sleep(time.Second)
	}
	took := time.Since(begun).Seconds()
	core, bytes = (spentCPU()-was).Seconds()/took, float64(read.Load()-then)/took
	cancel()
	all.Wait()
	return core, bytes
}

// spentCPU returns the processor time of this process so far.
func spentCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
