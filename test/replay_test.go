//go:build e2e

package test

import (
	"carma/runner/api"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// trace has sixty tasks over seven hours. At this speed it takes half a minute.
const (
	trace      = "../configs/traces/philly-t1-60.yaml"
	traceTasks = 60
	traceSpeed = "600"
	traceLeast = 30 * time.Second // wall-clock time of its makespan, rounded down
)

// TestReplayLive replays a trace as containers.
func TestReplayLive(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	s.checkReplay(s.beginReplay(t).wait())
	v := s.verified()
	if v.Submitted != traceTasks || v.Succeeded != traceTasks || v.Unfinished != 0 {
		t.Errorf("the journal has %+v, want %d tasks, all succeeded", v, traceTasks)
	}
	if v.Launches != traceTasks+v.Relaunches {
		t.Errorf("%d launches with %d relaunches of %d tasks", v.Launches, v.Relaunches, traceTasks)
	}
	if v.MostTasks < 2 {
		t.Error("no two tasks ever shared a GPU: the replay shows nothing")
	}
	s.checkContainers()
	s.checkOutput(traceTasks)
}

// TestReplaySurvivesKills replays the trace while the daemon is killed at random
// moments and started again.
func TestReplaySurvivesKills(t *testing.T) {
	t.Parallel()
	const kills = 10
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("TEST_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("TEST_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := newServer(t)
	if s.bin, err = carmaWithRace(); err != nil {
		t.Fatal(err)
	}
	s.start()
	gates := filepath.Join(s.root, "gates")
	if err := os.Mkdir(gates, 0o755); err != nil {
		t.Fatal(err)
	}
	// After each kill the witness prints some lines, both while there is no
	// daemon and when there is one again.
	args := []string{"--name", "witness", "--mem", "512M", "-v", gates + ":/gates", tool, "out:begin"}
	for n := range kills {
		args = append(args, fmt.Sprintf("gate:/gates/%d-down", n), "lines:20", fmt.Sprintf("gate:/gates/%d-up", n), "lines:20")
	}
	witness := s.submit(args...)
	open := func(n int, when string) {
		if err := os.WriteFile(filepath.Join(gates, fmt.Sprintf("%d-%s", n, when)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	replay := s.beginReplay(t)
	eventually(t, "the replay has begun", func() bool { // a replay without a daemon at its start is refused
		list, err := s.api.Tasks(t.Context(), api.ListOptions{All: true})
		return err == nil && len(list) > 1
	})
	wait := func(until time.Time) {
		select {
		case <-time.After(time.Until(until)):
		case <-replay.done:
			t.Fatalf("the replay ended before the last kill: %v", replay.wait())
		}
	}
	began := time.Now()
	const slot = traceLeast / (kills + 1)
	for n := range kills {
		wait(began.Add(time.Duration((float64(n) + rnd.Float64()) * float64(slot))))
		s.kill()
		open(n, "down")
		wait(time.Now().Add(time.Duration(rnd.Int64N(int64(slot / 4)))))
		s.launch()
		if rnd.IntN(3) == 0 { // sometimes kill it again while it starts
			wait(time.Now().Add(time.Duration(rnd.Int64N(int64(400 * time.Millisecond)))))
			s.kill()
			s.launch()
		}
		open(n, "up")
	}
	s.ready()
	s.checkReplay(replay.wait())
	s.succeeded(witness)

	v := s.verified()
	if v.Submitted != traceTasks+1 || v.Succeeded != traceTasks+1 || v.Unfinished != 0 {
		t.Errorf("the journal has %+v, want %d tasks, all succeeded", v, traceTasks+1)
	}
	s.checkContainers()
	s.checkOutput(traceTasks)
	out, errs := s.lines(witness)
	if want := witnessed("out", kills); !slices.Equal(out, append([]string{"begin"}, want...)) {
		t.Errorf("the witness printed %d lines, want %d: %q", len(out), 1+len(want), out)
	}
	if want := witnessed("err", kills); !slices.Equal(errs, want) {
		t.Errorf("the witness printed %d lines to stderr, want %d: %q", len(errs), len(want), errs)
	}
}

func witnessed(word string, kills int) (lines []string) {
	for range 2 * kills {
		for i := range 20 {
			lines = append(lines, fmt.Sprintf("%s %d", word, i+1))
		}
	}
	return lines
}

func (s *server) beginReplay(t *testing.T) *command {
	path, err := filepath.Abs(trace)
	if err != nil {
		t.Fatal(err)
	}
	return s.begin(nil, "replay", path, "--live", "--speed", traceSpeed, "--policy", "magm", "--image", image, "--json")
}

// checkReplay checks the result that carma replay prints.
func (s *server) checkReplay(r result) {
	s.t.Helper()
	if r.code != 0 {
		s.t.Fatal(r)
	}
	var sum struct {
		Tasks, Succeeded, Failed, OOMs, Relaunches int
		Makespan                                   float64 `json:"makespan_s"`
		List                                       []struct {
			ID        int
			Succeeded bool
			JCT       float64 `json:"jct_s"`
		}
	}
	if err := json.Unmarshal([]byte(r.out), &sum); err != nil {
		s.t.Fatal(err)
	}
	if sum.Tasks != traceTasks || sum.Succeeded != traceTasks || sum.Failed != 0 || len(sum.List) != traceTasks {
		s.t.Errorf("the replay says %+v, want %d tasks, all succeeded", sum, traceTasks)
	}
	if sum.OOMs != sum.Relaunches {
		s.t.Errorf("%d OOMs and %d relaunches: all relaunches should be OOMs", sum.OOMs, sum.Relaunches)
	}
	for _, task := range sum.List {
		if !task.Succeeded || task.JCT <= 0 || task.JCT > sum.Makespan {
			s.t.Errorf("task %d: %+v with a makespan of %v s", task.ID, task, sum.Makespan)
		}
	}
}
