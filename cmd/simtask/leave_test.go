package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/internal/units"
)

// TestLeaves checks that a task vacates its GPUs on request, except for its context, does not
// train in the meantime, and returns when there is room. Its output equals an undisturbed
// task's.
func TestLeaves(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about a second or more")
	}
	args := []string{"resnet18_cifar100_20e_1", "--print", "steps", "--time", "10m", "--context", "500M", "--peak", "20G"}
	b := newBench(t, 600)
	undisturbed := b.start("0", args...)
	if code := <-undisturbed.code; code != exitOK {
		t.Fatal(undisturbed.err.String())
	}
	want := undisturbed.out.String()

	b = newBench(t, 60) // 10 s
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "task"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.TrimSuffix(string(text), "\n")
	}
	order := func(line string) {
		path := filepath.Join(dir, "order")
		if err := os.WriteFile(path+".new", []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	b.leave = dir
	r := b.start("0", args...)
	b.leave = "" // of the others
	for round := 1; round <= 3; round++ {
		b.eventually("it trains", func() bool { return strings.Count(r.out.String(), "\n") > 8*round })
		if round == 1 && file("task/offer") != "carma-leave 1" {
			t.Fatalf("it offers %q", file("task/offer"))
		}
		order(fmt.Sprintf("leave %d", 4*round))
		b.eventually("it leaves", func() bool { return file("task/answer") == fmt.Sprintf("left %d", 4*round) })
		before := r.out.String()
		b.eventually("its context alone is there", func() bool { return b.gpu(0).Used == 500*units.MiB })
		full := b.start("0", "resnet18_cifar100_20e_1", "--time", "1000h", "--peak", "30G", "--hang")
		b.eventually("another has the GPU", func() bool { return b.gpu(0).Used > 30*units.GiB })
		order(fmt.Sprintf("return %d", 4*round+1))
		b.eventually("it cannot return", func() bool { return strings.HasPrefix(file("task/answer"), fmt.Sprintf("cannot %d ", 4*round+1)) })
		time.Sleep(300 * time.Millisecond)
		if after := r.out.String(); after != before {
			t.Errorf("it trains while it is away: %s", strings.TrimPrefix(after, before))
		}
		full.stop(stopped{syscall.SIGTERM})
		<-full.code
		b.eventually("there is room", func() bool { return b.gpu(0).Used < units.GiB })
		order(fmt.Sprintf("leave %d", 4*round+2)) // stay away
		b.eventually("it stays away", func() bool { return file("task/answer") == fmt.Sprintf("left %d", 4*round+2) })
		order(fmt.Sprintf("return %d", 4*round+3))
		b.eventually("it returns", func() bool { return file("task/answer") == fmt.Sprintf("here %d", 4*round+3) })
	}
	b.SetSpeed(600)
	if code := <-r.code; code != exitOK {
		t.Fatal(r.err.String())
	}
	if got := r.out.String(); got != want {
		t.Errorf("%s\nundisturbed:\n%s", got, want)
	}
}
