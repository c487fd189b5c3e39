//go:build e2e

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDoctorAnswers asks doctor on three machines: one with simulated GPUs, one
// with an NVIDIA driver and an engine that cannot attach GPUs, and a complete
// one.
func TestDoctorAnswers(t *testing.T) {
	t.Parallel()
	needRoot(t)
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Skip("no runc here")
	}
	driver := thinDriver(t)
	for _, row := range []struct {
		name    string
		runtime bool
		flags   []string
		code    int
		want    []string // lines of the answer, as regular expressions
		not     string
	}{
		{"no GPU", false, []string{"--gpus", "sim:dgx-station-a100"}, 0, []string{
			`^ok +container engine +docker \d`,
			`^ok +GPUs +4 from sim:dgx-station-a100, simulated at`,
			`^ok +simulated task image +carma/simtask:latest is there`,
			`^ok +GPU sharing +simulated: by MPS`,
			`^ok +ledger `,
		}, "failure"},
		{"no runtime", false, []string{"--gpus", "nvml"}, 1, []string{
			`^ok +container engine +docker \d`,
			`^ok +GPUs +1 from nvml`,
			`^ok +GPU activity +from gpm on GPU 0`,
			`^failure +GPU attachment +containers cannot get GPUs: neither`,
			`^ +fix: .*nvidia-ctk`,
		}, "simulated"},
		{"all of it", true, []string{"--gpus", "nvml"}, 0, []string{
			`^ok +container engine +docker \d`,
			`^ok +GPUs +1 from nvml`,
			`^warning +GPU health +GPU 0: 4 uncorrectable memory errors`,
			`^ok +GPU activity +from gpm on GPU 0`,
			`^ok +GPU attachment +runtime`,
			`^(ok|warning) +control groups +version [12]`,
			`^ok +journal `,
			`^(ok|warning) +disk `,
			`^ok +ledger +no GPU is over-committed`,
		}, "failure"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newDockerd(t)
			if row.runtime {
				e.args = []string{"--add-runtime", "nvidia=" + runc}
			}
			e.start()
			s := newServer(t)
			s.useEngine(e)
			card := filepath.Join(s.root, "card")
			if err := os.WriteFile(card, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			s.flags = append(row.flags, "--policy", "magm", "--sample-every", "100ms")
			s.env = []string{"LD_LIBRARY_PATH=" + driver, "THIN_GPU=" + card}
			s.start()
			var out string
			var code int
			eventually(t, "the GPUs are read", func() bool {
				r := s.carma("doctor")
				out, code = r.out, r.code
				return !strings.Contains(out, "nothing yet")
			})
			if code != row.code {
				t.Errorf("exit code %d, want %d", code, row.code)
			}
			for _, line := range row.want {
				if !regexp.MustCompile("(?m)" + line).MatchString(out) {
					t.Errorf("no line %s", line)
				}
			}
			if strings.Contains(out, row.not) {
				t.Errorf("it speaks of %s", row.not)
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}
