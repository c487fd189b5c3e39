package devices

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// Checker checks containers with a child process. The zero value is usable. It may be
// used by one goroutine at a time.
type Checker struct {
	// Program is called with ChildCommand, or this program if it is empty.
	Program string
	// Limit is the longest time that the child may take, or 5 s if it is 0.
	Limit time.Duration
}

// Check returns a result for each container, in order. One child checks all of them.
// It is killed after the limit, or when ctx ends; the containers that it did not reach
// are unknown.
func (k *Checker) Check(ctx context.Context, all []Container) []Result {
	out := make([]Result, len(all))
	if len(all) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(k.Limit, 5*time.Second))
	defer cancel()
	var in, answers bytes.Buffer
	lines := json.NewEncoder(&in)
	for _, c := range all {
		_ = lines.Encode(c) // encoding numbers and texts cannot fail
	}
	cmd := exec.CommandContext(ctx, cmp.Or(k.Program, "/proc/self/exe"), ChildCommand) // works even if a newer version has replaced the file
	cmd.Dir, cmd.Env = "/", []string{"GOMAXPROCS=1", "GOGC=off"}                       // few threads and page faults in the container's groups
	cmd.Stdin, cmd.Stdout = &in, &answers
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	got := bufio.NewScanner(&answers)
	for i := range out {
		switch {
		case !got.Scan():
			out[i].Why = fmt.Sprintf("the check did not get to it: %v", err)
		case json.Unmarshal(got.Bytes(), &out[i]) != nil:
			out[i] = Result{Why: "the check's answer cannot be read"}
		}
	}
	return out
}

// Find returns the first process of each container, by name. It reads all of /proc, so
// callers should keep the result.
func (*Checker) Find(names map[string]bool) map[string]int {
	found := map[string]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return found
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		if err != nil {
			continue
		}
		for name := range names {
			if old := found[name]; (old == 0 || pid < old) && innermost(text, []string{name}) {
				found[name] = pid
			}
		}
	}
	return found
}
