package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// manager is the service manager that started the daemon: systemd, or another that
// speaks sd_notify(3). Without a service manager its methods do nothing.
type manager struct {
	socket string        // or empty if there is none
	every  time.Duration // watchdog timeout, or 0 without a watchdog
	log    zerolog.Logger
}

// findManager reads the manager's variables, and removes them from the environment:
// programs that the daemon starts must not send messages in the daemon's name.
func findManager(log zerolog.Logger) *manager {
	m := &manager{socket: os.Getenv("NOTIFY_SOCKET"), log: log}
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && micros > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.every = time.Duration(micros) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return m
}

// tell sends assignments to the manager, a line each.
func (m *manager) tell(assignments ...string) {
	if m.socket == "" {
		return
	}
	name := m.socket
	if path, ok := strings.CutPrefix(name, "@"); ok {
		name = "\x00" + path // an abstract socket
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(strings.Join(assignments, "\n")))
		c.Close()
	}
	if err != nil {
		m.log.Warn().Err(err).Strs("said", assignments).Msg("the service manager could not be told")
	}
}

// watch reports to the service manager that the daemon is ready, and then sends
// keep-alives until ctx ends. turn requests a round of the daemon's loop and returns when
// the round has ended. So a daemon whose loop is blocked sends no keep-alive.
func (m *manager) watch(ctx context.Context, status string, turn func(context.Context) error) {
	if m.socket == "" || turn(ctx) != nil {
		return
	}
	m.tell("READY=1", "STATUS="+status)
	if m.every == 0 {
		return
	}
	const signs = 4 // keep-alives within the watchdog timeout
	tick := time.NewTicker(m.every / signs)
	defer tick.Stop()
	for turn(ctx) == nil {
		m.tell("WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reloading informs the manager that the configuration is read again.
func (m *manager) reloading() {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return
	}
	m.tell("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/int64(time.Microsecond)))
}

// reloaded informs the manager of the result.
func (m *manager) reloaded(status string) { m.tell("READY=1", "STATUS="+status) }
