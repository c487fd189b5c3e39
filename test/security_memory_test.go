//go:build e2e

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/runner/api"
)

// memoryBound is the largest memory of the daemon for requests, in MB; manyBound is the
// same with 30,000 pending tasks. They detect a request that takes many times its size.
// The program's own file, some 60 MB, does not count: it grows with the program, and the
// kernel can drop it. Without it, the largest possible submissions took at most 189 MB.
const (
	memoryBound = 250
	manyBound   = 450
)

// TestSecurityMemory: no submission and no listing takes much memory of the daemon.
func TestSecurityMemory(t *testing.T) {
	t.Parallel()
	needRoot(t)
	a := newAttacker(newServer(t))
	tasks := 2_000
	if full() {
		tasks = 30_000
	}
	bound := memoryBound
	seen := func(what string) {
		t.Helper()
		now, most := a.resident()
		if t.Logf("memory: %-58s %4d MB, at most %d MB so far", what, now, most); most == 0 || most > bound {
			t.Errorf("the daemon took %d MB, more than %d", most, bound)
		}
	}
	seen("a daemon that has done nothing")

	wide := api.Submission{} // as large as a submission may be
	text := "A=" + strings.Repeat("x", 100<<10)
	for range (16<<20)/len(text) - 1 {
		wide.Tasks = append(wide.Tasks, api.Submit{Image: tool, Mem: 1 << 30, Delay: time.Hour, Env: []string{text}})
	}
	codes := a.atOnce(4, "/v1/submissions", wide)
	seen(fmt.Sprintf("four submissions of 16 MiB at once: %v", codes))
	many := api.Submission{Tasks: make([]api.Submit, api.MaxTasks)}
	for i := range many.Tasks {
		many.Tasks[i] = api.Submit{Image: tool, Mem: 1 << 30, Delay: time.Hour, Env: []string{text[:1500]}}
	}
	codes = a.atOnce(4, "/v1/submissions", many)
	seen(fmt.Sprintf("four submissions of 10,000 tasks at once: %v", codes))
	codes = a.atOnce(4, "/v1/submissions", map[string]any{"tasks": make([]struct{}, 5<<20)})
	seen(fmt.Sprintf("four of 5,000,000 empty tasks: %v", codes))

	bound = manyBound
	for have := 0; have < tasks; have += api.MaxTasks { // tasks of root
		list := make([]api.Submit, min(api.MaxTasks, tasks-have))
		for i := range list {
			list[i] = api.Submit{Image: tool, Mem: 1 << 30, Delay: time.Hour}
		}
		if _, err := a.api.SubmitAll(t.Context(), api.Submission{Group: fmt.Sprintf("many%d", have), Tasks: list}); err != nil {
			t.Fatal(err)
		}
	}
	seen(fmt.Sprintf("%d tasks", tasks))
	listed, pages := 0, 0
	for before := int64(0); ; pages++ {
		some, next := a.pageOf(before)
		if listed += some; next == 0 {
			break
		}
		before = next
	}
	if listed < tasks || pages < tasks/1000-1 {
		t.Errorf("%d tasks on %d pages", listed, pages)
	}
	seen(fmt.Sprintf("%d tasks listed by %d pages", listed, pages+1))
	code, answer := a.ask(a.other, "GET", "/v1/tasks?limit=100000", "")
	if code != 422 {
		t.Errorf("a page of 100,000 tasks: %d %s", code, answer)
	}
	a.atOnce(0, "/v1/tasks?all=true", nil)
	seen("16 clients of one user list at once")
}

// atOnce sends several equal requests at the same time as the attacker, and
// returns the statuses.
func (a *attacker) atOnce(n int, path string, body any) []int {
	a.t.Helper()
	method, text := http.MethodPost, []byte(nil)
	if body == nil {
		method, n = http.MethodGet, 16
	} else {
		text, _ = json.Marshal(body)
	}
	codes := make([]int, n)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() { codes[i], _ = a.ask(a.id, method, path, string(text)) })
	}
	all.Wait()
	if codes[0] == 0 {
		a.t.Errorf("%s of %d bytes was not answered", path, len(text))
	}
	return codes
}

// pageOf returns the number of tasks on one page of the listing, and the beginning of the
// next page.
func (a *attacker) pageOf(before int64) (tasks int, next int64) {
	a.t.Helper()
	cli := a.client(a.other)
	defer cli.CloseIdleConnections()
	req, err := http.NewRequestWithContext(context.WithoutCancel(a.t.Context()), http.MethodGet, "http://carma/v1/tasks?all=true&before="+strconv.FormatInt(before, 10), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := cli.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	var list []json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || resp.StatusCode != http.StatusOK {
		a.t.Fatal(resp.Status, err)
	}
	next, _ = strconv.ParseInt(resp.Header.Get("Carma-Next"), 10, 64)
	return len(list), next
}

// resident returns the daemon's memory now and at its peak, in MB, without its program's file
// as far as that is in memory now.
func (s *server) resident() (now, most int) {
	file := 0
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range bytes.Lines(b) {
		_, _ = fmt.Sscanf(string(line), "VmRSS: %d kB", &now)
		_, _ = fmt.Sscanf(string(line), "VmHWM: %d kB", &most)
		_, _ = fmt.Sscanf(string(line), "RssFile: %d kB", &file)
	}
	return (now - file) / 1000, (most - file) / 1000
}
