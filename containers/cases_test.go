package containers

import (
	"strings"
	"testing"
	"time"
)

// TestCases checks the message of samples in addition to their class, also with other facts.
func TestCases(t *testing.T) {
	const gone = "GPU 0 can no longer be opened in the container (device cgroup)"
	used := Facts{Memory: GPUMemory{Readings: 60, Seen: true, Peak: 30 << 30, Grant: 32 << 30}}
	for _, row := range []struct {
		name    string
		facts   Facts
		class   Class
		message string // all of it
		demand  int64
	}{
		{"case-vllm-kv", Facts{}, ClassGPUOOM, "out of GPU memory (no room for the KV cache)", 0},
		{"case-peer-nccl", Facts{}, ClassGPUOOM, "out of GPU memory (NCCL)", 0},
		{"case-jax-new", Facts{}, ClassGPUOOM, "out of GPU memory (XLA)", 0},
		{"case-jax-new", used, ClassGPUOOM, "out of GPU memory (XLA), needed 38.00 GiB", 38 << 30},
		{"case-jax-conv", used, ClassGPUOOM, "out of GPU memory (XLA), needed 35.49 GiB", 30<<30 + 5898240000},
		{"case-paddle", Facts{}, ClassGPUOOM, "out of GPU memory (PaddlePaddle), needed 25.09 GiB", 26940014860},
		{"case-eb1", Facts{}, ClassProgram, "it asked for more memory than any GPU has", 0},
		{"case-cudnn-algo", Facts{}, ClassProgram, "exit code 1", 0},
		{"case-jax-solver", Facts{}, ClassProgram, "exit code 1", 0},
		{"case-nogpus", Facts{DeviceLost: gone}, ClassInfrastructure, "the program saw no GPU: " + gone, 0},
		{"case-nodev", Facts{DeviceLost: gone}, ClassInfrastructure, "the program saw no GPU: " + gone, 0},
		{"case-nodev", Facts{DeviceOpen: true, Memory: used.Memory}, ClassProgram, "the program saw no GPU", 0},
		{"case-nogpus-used-before", used, ClassInfrastructure, "the program saw no GPU: it had used its GPU before", 0},
	} {
		s := readSample(t, "testdata/tails/"+row.name+".txt")
		v := Classify(s.exit, s.lines, row.facts)
		if v.Class != row.class || v.Message != row.message || v.Demand != row.demand {
			t.Errorf("%s with %+v: %s, %q, demand %d; want %s, %q, %d", row.name, row.facts, v.Class, v.Message, v.Demand, row.class, row.message, row.demand)
		}
	}
}

// TestKilledPeer: a launcher that reports a process killed by signal 9 does not prove
// that host memory ran out; only the kernel's counter does. The message names the signal.
func TestKilledPeer(t *testing.T) {
	s := readSample(t, "testdata/tails/case-torchrun-9.txt")
	s.exit.OOMKilled = false
	v := Classify(s.exit, s.lines, Facts{})
	if v.Class != ClassProgram || v.Message != "exit code 1: one of its processes was killed (signal 9)" {
		t.Errorf("%s, %q", v.Class, v.Message)
	}
	s.exit.OOMKilled = true
	if v := Classify(s.exit, s.lines, Facts{}); v.Class != ClassHostOOM || v.Message != "the kernel killed one of its processes: out of host memory" {
		t.Errorf("counted by the kernel: %s, %q", v.Class, v.Message)
	}
}

// TestHiddenExitCode: a run that ends with 0 after the error of a GPU OOM, as behind a pipe, is
// a success with a remark, and that a run without an OOM error has no remark.
func TestHiddenExitCode(t *testing.T) {
	done := Exit{Started: time.Unix(1, 0), Finished: time.Unix(9, 0)}
	told, quiet := 0, 0
	for name, s := range samples(t) {
		v := Classify(done, s.lines, Facts{})
		if v.Class != ClassOK || v.Message != "exit code 0" {
			t.Errorf("%s: %s, %q", name, v.Class, v.Message)
		}
		strong := Classify(s.exit, s.lines, Facts{})
		switch says := strings.Contains(v.Remark, "set -o pipefail"); {
		case strong.Class == ClassGPUOOM && !says:
			t.Errorf("%s: nothing is said of an exit code of 0: %q", name, v.Remark)
		case strong.Class == ClassProgram && strong.Rule == "" && says:
			t.Errorf("%s: %q", name, v.Remark)
		case says:
			told++
		default:
			quiet++
		}
	}
	if told < 40 || quiet < 20 {
		t.Errorf("%d are told of, %d not", told, quiet)
	}
}
