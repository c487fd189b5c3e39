package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"carma/runner/suspend"
)

// call makes a call of the simulated driver for this process, which contains the tasks.
func (b *bench) call(call suspend.Call) {
	b.t.Helper()
	if _, err := b.Driver().Call(context.Background(), suspend.Request{Call: call, PID: os.Getpid(), Limit: 20 * time.Second}); err != nil {
		b.t.Fatal(err)
	}
}

// TestSuspended: a task that was suspended three times, once over a restart of the
// daemon, has the same output as an undisturbed one. Nothing is printed meanwhile.
func TestSuspended(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	args := []string{"resnet18_cifar100_20e_1", "--print", "steps", "--time", "10m"}
	b := newBench(t, 600)
	undisturbed := b.start("0", args...)
	if code := <-undisturbed.code; code != exitOK {
		t.Fatal(undisturbed.err.String())
	}
	want := undisturbed.out.String()
	if n := strings.Count(want, "\n"); n != 54 || !strings.HasSuffix(want, "\ntrained 20 epochs\n") { // 2 of the header, 51, 1
		t.Fatalf("%d lines: %s", n, want)
	}
	b = newBench(t, 60) // 10 s
	r := b.start("0", args...)
	for round := 1; round <= 3; round++ {
		b.eventually("it trains", func() bool { return strings.Count(r.out.String(), "\n") > 8*round })
		b.call(suspend.CallLock)
		b.call(suspend.CallCheckpoint)
		time.Sleep(50 * time.Millisecond) // for a line about the training before
		before := r.out.String()
		if round == 2 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b.restart(60)
		}
		time.Sleep(time.Second)
		if after := r.out.String(); after != before {
			t.Errorf("it trains while it is suspended: %s", strings.TrimPrefix(after, before))
		}
		b.call(suspend.CallRestore)
		b.call(suspend.CallUnlock)
	}
	b.SetSpeed(600)
	if code := <-r.code; code != exitOK {
		t.Fatal(r.err.String())
	}
	if got := r.out.String(); got != want {
		t.Errorf("%s\nundisturbed:\n%s", got, want)
	}
}
