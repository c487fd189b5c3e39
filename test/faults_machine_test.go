//go:build e2e && failpoints

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/runner/api"
)

// machineFaults happen to the machine: its clock, its GPUs, its processes.
var machineFaults = []fault{
	{name: "clock set back by 24 h", clock: true, card: true, inject: func(l *lab) string {
		return l.setClock(-24*time.Hour, "was set back")
	}},
	{name: "clock set forward by 48 h", clock: true, card: true, inject: func(l *lab) string {
		return l.setClock(48*time.Hour, "was set forward")
	}},
	{name: "GPU lost", card: true, inject: func(l *lab) string {
		l.show("lost\n")
		l.logged("the GPU is lost")
		words := l.waitsForCard("lost")
		l.show("")
		l.ends("waits", "succeeded")
		return words
	}},
	{name: "driver hangs", card: true, inject: func(l *lab) string {
		l.show("hang\n")
		l.logged("they get no tasks until they can") // after 30 s
		words := l.waitsForCard("does not answer")
		l.show("")
		l.ends("waits", "succeeded")
		return words
	}},
	{name: "fork bomb", inject: func(l *lab) string {
		bomb := program("bomb", strings.Split(strings.Repeat("fork:1000000 ", 1000)+"block:143", " ")...)
		bomb.Pids = 64
		l.submit(bomb)
		for i := range 3 {
			name := fmt.Sprint("neighbour-", i)
			l.submit(program(name, "exit:0"))
			l.ends(name, "succeeded")
		}
		t := l.sees("bomb", "its processes", func(t api.Task) bool { return t.Finished() || t.Phase == "running" })
		if !t.Finished() {
			if _, err := l.api.Stop(l.t.Context(), "bomb", api.StopRequest{Now: true}); err != nil {
				l.t.Error(err)
			}
		}
		t = l.sees("bomb", "its end", func(t api.Task) bool { return t.Finished() })
		return "64 processes at most, neighbours start and end; the bomb: " + t.Phase
	}},
}

// useCard runs the daemon on the card of the NVML stand-in, in real time.
func (l *lab) useCard() {
	l.card = filepath.Join(l.root, "card")
	l.show("")
	l.options = [][]string{{"--gpus", "nvml", "--attach", "runtime", "--policy", "magm", "--sample-every", "100ms", "--warm-up", "0s", "--backoff", "1s"}}
	l.always = append(l.always, "LD_LIBRARY_PATH="+thinDriver(l.t), "THIN_GPU="+l.card)
}

// show sets what the card reports.
func (l *lab) show(lines string) { l.t.Helper(); replaceFile(l.t, l.card, lines) }

// waitsForCard submits a task that waits for the card, and returns the reason.
func (l *lab) waitsForCard(words string) string {
	l.t.Helper()
	l.submit(program("waits", "exit:0"))
	t := l.sees("waits", "the reason "+words, func(t api.Task) bool {
		return t.Phase == "queued" && strings.Contains(t.Waits, words)
	})
	return "tasks go on; what waits says: " + t.Waits
}

// buildWithClock builds the daemon with a clock that can be set, like a machine's
// clock that is set while a program runs. The file CARMA_TEST_CLOCK has the
// clock's error in seconds. The monotonic clock stays correct.
var buildWithClock = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src/time")
	text, err := os.ReadFile(filepath.Join(dir, "time.go"))
	if err != nil {
		return "", err
	}
	const was = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {"
	if strings.Count(string(text), was) != 1 {
		return "", fmt.Errorf("%s/time.go has no such Now", dir)
	}
	changed := strings.Replace(string(text), was, "	sec, nsec, mono := runtimeNow()\n	sec += wrong.Load()\n	if mono == 0 {", 1)
	replace := map[string]string{filepath.Join(dir, "time.go"): filepath.Join(scratch, "time.go"), filepath.Join(dir, "wrong.go"): filepath.Join(scratch, "wrong.go")}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "clock.json")
	for name, b := range map[string][]byte{"time.go": []byte(changed), "wrong.go": []byte(wrongClock), "clock.json": overlay} {
		if err := os.WriteFile(filepath.Join(scratch, name), b, 0o644); err != nil {
			return "", err
		}
	}
	return build("carma-clock", "carma/cmd/carma", "-tags", "failpoints", "-ldflags", "-X main.version=clock", "-overlay", path)
})

// wrongClock must not block, because Now is called in places where nothing may
// block. So a goroutine reads the file.
const wrongClock = `package time

import (
	"sync/atomic"
	"syscall"
)

var wrong atomic.Int64 // seconds

func init() {
	path, _ := syscall.Getenv("CARMA_TEST_CLOCK")
	readWrong(path)
	go func() {
		for {
			Sleep(20 * Millisecond)
			readWrong(path)
		}
	}()
}

func readWrong(path string) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	var b [32]byte
	n, _ := syscall.Read(fd, b[:])
	syscall.Close(fd)
	if n <= 0 {
		return
	}
	seconds := int64(0)
	for _, c := range b[:n] {
		if c >= '0' && c <= '9' {
			seconds = 10*seconds + int64(c-'0')
		}
	}
	if b[0] == '-' {
		seconds = -seconds
	}
	wrong.Store(seconds)
}
`

// useClock runs the daemon with a clock that can be set.
func (l *lab) useClock() {
	l.t.Helper()
	bin, err := buildWithClock()
	if err != nil {
		l.t.Fatal(err)
	}
	l.builds = []string{bin}
	l.always = append(l.always, "CARMA_TEST_CLOCK="+l.wrongBy(0))
}

// wrongBy sets the error of the daemon's clock.
func (l *lab) wrongBy(d time.Duration) (path string) {
	l.t.Helper()
	path = filepath.Join(l.root, "clock")
	replaceFile(l.t, path, strconv.Itoa(int(d.Seconds())))
	return path
}

// setClock sets the daemon's clock while it runs, and again over restarts. It
// checks that delays and time limits count real time.
func (l *lab) setClock(by time.Duration, said string) string {
	l.t.Helper()
	later := func(name string) {
		s := program(name, "exit:0")
		s.Delay = 2 * time.Second
		l.submit(s)
	}
	later("before")
	l.wrongBy(by)
	l.ends("before", "succeeded")
	short := program("short", "block:143")
	short.TimeLimit = 20 * time.Second
	l.submit(short)
	l.isRunning("short")
	later("over")
	l.kill()
	l.up()
	l.logged(said)
	if t := l.sees("short", "it is there", func(api.Task) bool { return true }); t.Finished() {
		l.t.Errorf("it has ended before its time: %s", t.Reason)
	}
	l.ends("over", "succeeded")
	l.ends("short", "failed")
	l.wrongBy(0)
	l.kill()
	l.up()
	later("after")
	l.ends("after", "succeeded")
	return "delays and limits by what really passes; the log says so"
}

// lookPath finds a program, or skips the test.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}
