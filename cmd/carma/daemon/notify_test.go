package daemon

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// listenAs makes a manager's socket and sets the environment that it would set.
func listenAs(t *testing.T, watchdog string) (*manager, *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", watchdog)
	t.Setenv("WATCHDOG_PID", "")
	return findManager(zerolog.New(zerolog.NewTestWriter(t))), c
}

// said returns the next message, or an empty text if none comes in time.
func said(t *testing.T, c *net.UnixConn, within time.Duration) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n, _ := c.Read(b)
	return string(b[:n])
}

// TestWatchdog checks that the daemon reports readiness to the manager after the first round of
// the loop, and keeps resetting the watchdog only while the loop runs.
func TestWatchdog(t *testing.T) {
	m, c := listenAs(t, "200000")
	if m.every != 200*time.Millisecond || os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv("WATCHDOG_USEC") != "" {
		t.Fatalf("%s, left in the environment: %q", m.every, os.Getenv("NOTIFY_SOCKET"))
	}
	round, ctx := make(chan struct{}), t.Context()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		m.watch(ctx, "all well", func(ctx context.Context) error {
			select {
			case <-round:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	if got := said(t, c, 300*time.Millisecond); got != "" {
		t.Errorf("before the first round: %q", got)
	}
	round <- struct{}{}
	if got := said(t, c, 10*time.Second); got != "READY=1\nSTATUS=all well" {
		t.Errorf("after it: %q", got)
	}
	for range 3 {
		round <- struct{}{}
		if got := said(t, c, 10*time.Second); got != "WATCHDOG=1" {
			t.Errorf("a sign of life: %q", got)
		}
	}
	if got := said(t, c, time.Second); got != "" {
		t.Errorf("while the loop stands still: %q", got)
	}
	cancel()
	<-done
}

// TestManager checks that nothing is sent without a manager, and that a watchdog for another
// process is ignored.
func TestManager(t *testing.T) {
	m, c := listenAs(t, "1000")
	m.reloading()
	if got := said(t, c, 10*time.Second); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("%q", got)
	}
	m.reloaded("a fault")
	if got := said(t, c, 10*time.Second); got != "READY=1\nSTATUS=a fault" {
		t.Errorf("%q", got)
	}
	t.Setenv("WATCHDOG_USEC", "1000")
	t.Setenv("WATCHDOG_PID", "1")
	if m := findManager(zerolog.Nop()); m.every != 0 || m.socket != "" {
		t.Errorf("%+v", m)
	}
	(&manager{}).tell("READY=1")
	(&manager{}).watch(t.Context(), "", func(context.Context) error { t.Error("asked for nobody"); return nil })
}
