//go:build e2e

package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
)

// sampleOf copies the text of a sample of an ending, without its head, into a folder.
func sampleOf(t *testing.T, name, dir string) string {
	t.Helper()
	b, err := os.ReadFile("../containers/testdata/tails/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "\n")
	path := filepath.Join(dir, name+".txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServerOOMBesideANeighbour: an inference server that finds no room for its cache
// beside a neighbour runs again with more memory, beside that neighbour, and succeeds.
func TestServerOOMBesideANeighbour(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	dir := t.TempDir()
	neighbour := s.submit("--mem", "20G", "--gpus", "device=0", image, "resnet50-imagenet-bs64", "--peak", "18G", "--time", "2h", "--smact", "0.1")
	s.holds(neighbour, 18*units.GiB)
	text := sampleOf(t, "case-vllm-kv", dir)
	served := s.submit("--host", "--mem", "4G", "--gpus", "device=0", "-v", dir+":"+dir, "-w", dir, "--", "sh", "-c",
		"test -e "+dir+"/again && exit 0; touch "+dir+"/again; cat "+text+" >&2; exit 1")
	s.succeeded(served)
	task := s.inspect(served)
	if len(task.Attempts) != 2 {
		t.Fatalf("%d attempts: %+v", len(task.Attempts), task)
	}
	first, second := task.Attempts[0], task.Attempts[1]
	if first.Outcome != "gpu-oom" || second.Grant <= first.Grant || task.Alone || second.GPUs[0].Index != 0 {
		t.Errorf("ended as %s with %s, then got %s, alone %v", first.Outcome, units.Bytes(first.Grant), units.Bytes(second.Grant), task.Alone)
	}
	if out := s.ok("why", served); !strings.Contains(out, "output (gpu-oom, strong)") || !strings.Contains(out, "[vllm-cache]") {
		t.Errorf("carma why does not show the witness:\n%s", out)
	}
	if n := s.inspect(neighbour); len(n.Attempts) != 1 || n.Finished() {
		t.Errorf("the neighbour: %+v", n)
	}
}

// TestTranscriptIsNoOOM: an evaluation that prints an answer about exhausted memory fails
// by its own fault at once; so does a program that asks for more than any GPU has.
func TestTranscriptIsNoOOM(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	dir := t.TempDir()
	for _, name := range []string{"case-llm-transcript", "case-eb1", "case-caught-then-exit"} {
		ref := s.submit("--host", "--mem", "4G", "-v", dir+":"+dir, "-w", dir, "--", "sh", "-c", "cat "+sampleOf(t, name, dir)+"; exit 1")
		task := s.until(ref, "its end", func(t *api.Task) bool { return t.Finished() })
		if task.Phase != "failed" || len(task.Attempts) != 1 || task.Attempts[0].Outcome != "program" {
			t.Errorf("%s: %s after %d attempts, %+v", name, task.Phase, len(task.Attempts), task.Attempts)
		}
	}
}

// TestOOMExit checks that an aborted program whose output says so, a configured exit code and a
// configured text count as a GPU OOM, and that a task that exits with 0 after an error has a
// note.
func TestOOMExit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"aborted":   {"--host", "-v", dir + ":" + dir, "-w", dir, "--", "sh", "-c", "cat " + sampleOf(t, "case-catboost", dir) + " >&2; exit 134"},
		"exit code": {"--oom-exit", "77", tool, "exit:77"},
		"text":      {"--oom-text", "pool is empty", tool, "err:fatal: pool is empty", "exit:3"},
	} {
		ref := s.submit(append([]string{"--mem", "4G"}, args...)...)
		s.until(ref, "its second attempt", func(t *api.Task) bool {
			return len(t.Attempts) > 1 && t.Attempts[0].Outcome == "gpu-oom" && t.Attempts[1].Grant > t.Attempts[0].Grant
		})
		s.ok("stop", ref)
		t.Log(name)
	}
	if r := s.carma("run", "--oom-exit", "0", tool, "exit:1"); r.code != 2 || !strings.Contains(r.err, "a number from 1 to 255") {
		t.Error(r)
	}
	piped := s.submit("--host", "--mem", "4G", "-v", dir+":"+dir, "-w", dir, "--", "sh", "-c", "(cat "+sampleOf(t, "case-trtllm-mallocasync", dir)+"; exit 1) | tee log")
	s.succeeded(piped)
	if out := s.ok("why", piped); !strings.Contains(out, "pipefail") {
		t.Errorf("carma why of a pipe:\n%s", out)
	}
	ref := s.submit("--mem", "4G", tool, "err:torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "exit:0")
	s.succeeded(ref)
	if out := s.ok("why", ref); !strings.Contains(out, "pipefail") {
		t.Errorf("carma why:\n%s", out)
	}
}
