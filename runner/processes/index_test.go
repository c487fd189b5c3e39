package processes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/runner/gpu"
)

// TestIndex: a process belongs to the attempt of its container, also in a container inside
// it, until the attempt's container is forgotten or belongs to a newer attempt.
func TestIndex(t *testing.T) {
	root, id, inner := t.TempDir(), strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for pid, group := range map[string]string{"51": "/docker/" + id, "52": "/docker/" + id + "/docker/" + inner, "53": "/user.slice", "not": "/"} {
		if err := os.MkdirAll(filepath.Join(root, "proc", pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc", pid, "cgroup"), []byte("0::"+group+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	x := New(root)
	forget := x.Add(gpu.AttemptKey{Task: 7, Attempt: 1}, id, "carma-x-7-1")
	for pid, want := range map[int]bool{51: true, 52: true, 53: false, 99: false} {
		if task, attempt, ok := x.Owner(pid); ok != want || ok && (task != 7 || attempt != 1) {
			t.Errorf("process %d: task %d, attempt %d, %v", pid, task, attempt, ok)
		}
	}
	again := x.Add(gpu.AttemptKey{Task: 7, Attempt: 2}, id)
	if forget(); x.Len() != 1 {
		t.Errorf("%d names after the first attempt", x.Len())
	}
	if _, attempt, ok := x.Owner(51); !ok || attempt != 2 {
		t.Errorf("then it is attempt %d, %v", attempt, ok)
	}
	if again(); x.Len() != 0 {
		t.Error("the second attempt is not forgotten")
	}
}
