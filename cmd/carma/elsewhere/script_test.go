package elsewhere

import (
	"strings"
	"testing"
)

// TestDirectives: the result for a batch script's lines for Slurm or gflow.
func TestDirectives(t *testing.T) {
	for script, want := range map[string]string{
		"#!/bin/bash\n#SBATCH --gres=gpu:a100:2\n#SBATCH --time=90\n#SBATCH -J exp # its name\n\n#SBATCH --mem=64G\npython train.py\n#SBATCH --array=1-3": "--gpus 2, --time 90m, --name exp, --host-mem 64G",
		"#SBATCH --gres gpu\n#SBATCH --mem 4000\n#SBATCH -t 1-12:00:00\n":                                                                                 "--gpus 1, --host-mem 4000M, --time 1-12:00:00",
		"#!/bin/sh\n#GFLOW --gpus 1\n#GFLOW --conda-env=exp\n#GFLOW --time 2:00:00":                                                                       "--gpus 1, --conda exp, --time 2:00:00",
		"#SBATCH --output=%j.out\n#SBATCH --partition=gpu\n#SBATCH\n#SBATCH --gres=license:2\n#SBATCH --exclusive\n#SBATCH -G":                            "--exclusive",
		"#SBATCH --partition=gpu\n":               "",
		"#!/bin/bash\necho 1\n#SBATCH --gpus=2\n": "none",
		"# SBATCH --gpus=2\n":                     "none",
	} {
		mark, flags := Directives(strings.NewReader(script))
		got := strings.Join(flags, ", ")
		if mark == "" {
			got = "none"
		} else if !strings.Contains(script, mark+" ") {
			t.Errorf("%q: %s", script, mark)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}
