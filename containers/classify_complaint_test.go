package containers

import "testing"

// TestComplained checks that, if a program does not start, its last line is the reason. The
// last line of any other program is not reported.
func TestComplained(t *testing.T) {
	for _, row := range []struct {
		code int
		tail []string
		want string
	}{
		{2, []string{"usage: train.py [-h] [--data DATA]", "train.py: error: unrecognized arguments: --epoch 3", ""}, "exit code 2: train.py: error: unrecognized arguments: --epoch 3"},
		{2, []string{"python: can't open file '/app/train.py': [Errno 2] No such file or directory"}, "exit code 2: python: can't open file '/app/train.py': [Errno 2] No such file or directory"},
		{127, []string{"bash: line 1: torchrun: command not found"}, "exit code 127 (command not found): bash: line 1: torchrun: command not found"},
		{2, []string{`simtask: unknown workload "x"; nearest: resnet`}, `exit code 2: simtask: unknown workload "x"; nearest: resnet`},
		{1, []string{"\x1b[31mtrain.py: error: no data\x1b[0m"}, "exit code 1: train.py: error: no data"},
		{1, []string{"train.py: error: no data", "token: abc123"}, "exit code 1"},
		{1, []string{"ERROR: error: something"}, "exit code 1"},
		{1, []string{"step 10: loss 0.3"}, "exit code 1"},
		{0, []string{"train.py: error: no data"}, "exit code 0"},
	} {
		if got := Classify(Exit{Code: row.code}, row.tail, Facts{}); got.Message != row.want {
			t.Errorf("%q: %q, want %q", row.tail, got.Message, row.want)
		}
	}
	// A rule that matches counts, not the last line.
	got := Classify(Exit{Code: 1}, []string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "train.py: error: giving up"}, Facts{})
	if got.Class != ClassGPUOOM {
		t.Errorf("%+v", got)
	}
}
