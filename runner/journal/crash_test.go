package journal

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const childEnv = "CARMA_JOURNAL_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		fmt.Println(commitForever(dir))
		os.Exit(1)
	}
	if raced {
		if err := flag.Set("rapid.checks", "15"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// commitForever is the child: it commits until it is killed. After each acknowledged commit
// it prints the number of its last event.
func commitForever(dir string) error {
	j, err := Open(dir)
	if err != nil {
		return err
	}
	_, last, err := j.Bounds()
	for err == nil {
		n := rand.Int64N(12)
		var b Batch
		for seq := last + 1; seq <= last+n; seq++ {
			b.Events = append(b.Events, crashEvent(seq))
			b.Decisions = append(b.Decisions, Decision{Seq: seq, Kind: "d"})
			b.Tasks = append(b.Tasks, TaskRow{ID: seq%50 + 1, Submitted: seq})
		}
		if _, err = j.Commit(b); err != nil {
			break
		}
		last += n
		if _, err = fmt.Println(last); err != nil {
			break
		}
		if last%7 == 0 && last > 0 {
			if err = j.Snapshot(last, last, fmt.Appendf(nil, "state %d", last)); err == nil {
				_, err = j.Prune(300, last)
			}
		}
	}
	return err
}

func crashEvent(seq int64) Event {
	return Event{At: seq, Kind: "k", Body: []byte(strings.Repeat(strconv.FormatInt(seq, 10), 1+int(seq%200)))}
}

// A commit is acknowledged only when it would survive the death of the process.
// A commit that is cut short leaves nothing. The lock and the write-ahead log
// of a dead daemon are no obstacle. This test cannot show that data reaches the
// disk: a killed process leaves the kernel's cache intact.
func TestKill9(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for round := range 8 {
		acked := killAfter(t, exe, dir, 1+rand.IntN(150))
		j, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		first, last, err := j.Bounds()
		if err != nil || last < acked {
			t.Fatalf("round %d: acknowledged up to %d, found up to %d (%v)", round, acked, last, err)
		}
		for _, e := range collect(t, &j.Reader, first-1) {
			if want := crashEvent(e.Seq); string(e.Body) != string(want.Body) || e.At != want.At {
				t.Fatalf("event %d is not what was committed", e.Seq)
			}
		}
		s, err := j.Load()
		if err != nil || s.Damaged != nil || s.Seq > 0 && string(s.Body) != fmt.Sprintf("state %d", s.Seq) {
			t.Fatalf("snapshot %d: %v, %v", s.Seq, err, s.Damaged)
		}
		for _, err := range j.Events(s.Seq) {
			if err != nil {
				t.Fatal(err)
			}
		}
		tasks, err := j.Tasks(Filter{Limit: 1})
		if err != nil || len(tasks) == 1 && tasks[0].Submitted > last {
			t.Fatalf("task of a commit that is not there: %+v, %v", tasks, err)
		}
		if err := errors.Join(j.Check(), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter starts a child, reads n acknowledgements, reads the journal beside it, kills it
// at any point, and returns the last number it acknowledged.
func killAfter(t *testing.T, exe, dir string, n int) (acked int64) {
	t.Helper()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		seq, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatalf("child: %s", lines.Text())
		}
		acked = seq
		switch i {
		case 0:
			_, err := Open(dir)
			if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("by process %d", cmd.Process.Pid)) {
				t.Errorf("second daemon: %v", err)
			}
		case n:
			if err := cmd.Process.Kill(); err != nil { // numbers in the pipe are acknowledged too
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	return acked
}
