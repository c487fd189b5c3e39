//go:build docker

package docker

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"carma/containers"
)

// flood starts a container that prints the numbers to n. Its engine keeps this number of
// bytes of its output.
func flood(t *testing.T, d *Driver, n int, bytes int64) string {
	t.Helper()
	id, err := d.Create(t.Context(), containers.Spec{
		Name:  fmt.Sprintf("carma-suite-%d-%d", os.Getpid(), time.Now().UnixNano()),
		Image: toolRef, Command: []string{fmt.Sprint("count:", n)}, User: "0:0",
		Labels: map[string]string{"carma.suite.test": "flood"}, LogBytes: bytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
	})
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestFlood (finding F11): the output of `seq 1 3000000` arrives complete, though
// the engine keeps 20 MiB of its 240.
func TestFlood(t *testing.T) {
	const n = 3_000_000
	d := newDriver(t, "")
	defer func() { _ = d.Close() }()
	if d.SameFiles() != nil {
		t.Skip("the engine's files cannot be read from here")
	}
	id := flood(t, d, n, 8<<20)
	next, missing := 1, 0
	err := d.Logs(t.Context(), id, time.Time{}, true, func(_ time.Time, stream containers.Stream, line []byte, _ bool) {
		if stream == containers.Missing {
			missing++
			return
		}
		if got := string(line); missing == 0 && got != fmt.Sprint(next) {
			t.Fatalf("line %d is %q", next, got)
		}
		next++
	})
	if err != nil || next != n+1 || missing > 0 {
		t.Errorf("%d of %d lines, %d gaps, %v", next-1, n, missing, err)
	}
}

// TestFloodUnread: the log is not read while the container prints. The engine must keep the
// promised amount. Readers must get a report about the missing output, including readers that
// have read the beginning before.
func TestFloodUnread(t *testing.T) {
	d := newDriver(t, "")
	defer func() { _ = d.Close() }()
	for _, c := range []struct {
		lines int
		bytes int64
		gap   bool
	}{{200_000, 10 << 20, false}, {300_000, 2 << 20, true}} { // 48 bytes a line in our log
		id := flood(t, d, c.lines, c.bytes)
		if _, err := d.Wait(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		got, gap, last := 0, false, ""
		var first time.Time
		sink := func(at time.Time, stream containers.Stream, line []byte, _ bool) {
			if stream == containers.Missing {
				gap = true
				return
			}
			if got++; got == 1 {
				first = at
			}
			last = string(line)
		}
		if err := d.Logs(t.Context(), id, time.Time{}, true, sink); err != nil {
			t.Fatal(err)
		}
		if gap != c.gap || !gap && got != c.lines || last != fmt.Sprint(c.lines) {
			t.Errorf("%d of %d lines up to %s, gap %v", got, c.lines, last, gap)
		}
		gap = false
		if err := d.Logs(t.Context(), id, first.Add(-time.Second), true, sink); err != nil || gap != c.gap {
			t.Errorf("read on from before the first line that is there: gap %v, %v", gap, err)
		}
	}
}
