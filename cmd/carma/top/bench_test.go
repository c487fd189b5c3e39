package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"carma/runner/api"
)

// serverEnv is an environment variable with a socket. If it is set, the test binary serves as
// the benchmark's daemon on this socket until its stdin ends, in another process, so that its
// CPU time does not count.
const serverEnv = "TOP_TEST_SERVER"

func serveCrowd(socket string) error {
	f := crowd(16, 500)
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/info", func(w http.ResponseWriter, _ *http.Request) {
		f.info.Now = time.Now()
		answer(w, f.info)
	})
	mux.HandleFunc("GET /v1/gpus", func(w http.ResponseWriter, _ *http.Request) {
		for i := range f.gpus { // all figures differ each time
			f.gpus[i].SMACT, f.gpus[i].PowerW = float64(time.Now().UnixMilli()%100)/100, float64(500+time.Now().UnixMilli()%200)
		}
		answer(w, f.gpus)
	})
	mux.HandleFunc("GET /v1/tasks", func(w http.ResponseWriter, r *http.Request) {
		list := slices.Clone(f.tasks)
		if phases := r.URL.Query().Get("phase"); phases != "" {
			list = slices.DeleteFunc(list, func(t api.Task) bool { return !slices.Contains(strings.Split(phases, ","), t.Phase) })
		}
		answer(w, list)
	})
	mux.HandleFunc("GET /v1/tasks/{task}/why", func(w http.ResponseWriter, r *http.Request) {
		answer(w, api.Why{Start: &api.Start{Earliest: time.Now().Add(time.Hour)}})
	})
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for i := 0; r.Context().Err() == nil; i++ { // one a second: a busy server
			b, _ := json.Marshal(f.tasks[i%len(f.tasks)])
			fmt.Fprintf(w, "event: task\ndata: %s\n\n", b)
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}
	})
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, mux) }()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// BenchmarkTop runs the whole view for 20 s against a server with 16 GPUs and 500 tasks, at the
// usual interval and with an event per second, and reports its CPU use as a share of a core.
// The share should be below 5 %.
func BenchmarkTop(b *testing.B) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {300, 80}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			socket := filepath.Join(b.TempDir(), "s")
			server := exec.Command(os.Args[0])
			server.Env = append(os.Environ(), serverEnv+"="+socket)
			stdin, err := server.StdinPipe()
			if err == nil {
				err = server.Start()
			}
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = stdin.Close(); _ = server.Wait() }()
			client := api.NewClient(socket)
			for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if _, err := client.Info(b.Context()); err == nil {
					break
				} else if time.Now().After(until) {
					b.Fatal(err)
				}
			}
			var shares []float64
			for b.Loop() {
				shares = append(shares, costOf(b, client, size[0], size[1]))
			}
			slices.Sort(shares)
			b.ReportMetric(100*shares[len(shares)/2], "%core")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// costOf returns the CPU time of the view divided by the wall-clock time, over 20 s.
func costOf(b *testing.B, client *api.Client, width, height int) float64 {
	m := newModel(client, time.Now, 1003, &unicodeGlyphs)
	ctx, cancel := context.WithCancel(b.Context())
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(io.Discard), tea.WithFPS(frames), tea.WithWindowSize(width, height),
		tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignalHandler())
	m.feed = newFeed(client, 2*time.Second, program.Send)
	fed, ran := make(chan struct{}), make(chan struct{})
	go func() { defer close(fed); m.feed.run(ctx) }()
	go func() { defer close(ran); _, _ = program.Run() }()
	time.Sleep(3 * time.Second) // the start is not counted
	from, began := used(b), time.Now()
	time.Sleep(20 * time.Second)
	share := (used(b) - from).Seconds() / time.Since(began).Seconds()
	cancel()
	<-ran
	<-fed
	if len(m.tasks) < 500 || len(m.gpus) != 16 {
		b.Errorf("the view has %d tasks and %d GPUs", len(m.tasks), len(m.gpus))
	}
	return share
}

// used returns the CPU time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkScreen draws one screen of a large server.
func BenchmarkScreen(b *testing.B) {
	m := newModel(nil, func() time.Time { return noon }, 1003, &unicodeGlyphs)
	f := crowd(16, 500)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	m.Update(snapshot{info: f.info, gpus: f.gpus, tasks: f.tasks, whole: true})
	for b.Loop() {
		_ = m.View()
	}
}

// BenchmarkSnapshot adds all tasks of a large server to the view.
func BenchmarkSnapshot(b *testing.B) {
	m := newModel(nil, func() time.Time { return noon }, 1003, &unicodeGlyphs)
	f := crowd(16, 500)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	for b.Loop() {
		m.Update(snapshot{info: f.info, gpus: f.gpus, tasks: f.tasks, whole: true})
	}
}
