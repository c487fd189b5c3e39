package agent

import (
	"regexp"
	"strings"
	"testing"

	"carma/cmd/carma/agent"
	"carma/cmd/carma/cli"
	"carma/runner/gpu"
)

func valid() agent.Flags {
	return agent.Flags{Name: "n1", Server: "dgx-h100", Kubelet: "/k", CDI: "/c", Dir: "/d", Speed: 1}
}

// TestCheck checks that wrong flags are refused with a message of one line.
func TestCheck(t *testing.T) {
	f := valid()
	if _, err := check(f); err != nil {
		t.Fatal(err)
	}
	for say, spoil := range map[string]func(*agent.Flags){
		"dgx-h100":                func(f *agent.Flags) { f.Server = "dgx" },
		"--speed 0":               func(f *agent.Flags) { f.Speed = 0 },
		"is not an absolute path": func(f *agent.Flags) { f.CDI = "cdi" },
	} {
		f := valid()
		spoil(&f)
		if _, err := check(f); err == nil || cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want %s", err, say)
		}
	}
}

// TestNames checks that two nodes that simulate the same server have GPUs with different UUIDs,
// and that a restarted node keeps its UUIDs.
func TestNames(t *testing.T) {
	form := regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, name := range []string{"n1", "n2"} {
		f := valid()
		f.Name = name
		first, err := check(f)
		again, _ := check(f)
		if err != nil || len(first.GPUs) != 8 {
			t.Fatal(err)
		}
		for i, g := range first.GPUs {
			if !form.MatchString(g.UUID) || seen[g.UUID] || again.GPUs[i].UUID != g.UUID {
				t.Errorf("%s of %s", g.UUID, name)
			}
			seen[g.UUID] = true
		}
	}
}

// TestFace checks that a change of memory is reported at once, and that values that change with
// each sample are not.
func TestFace(t *testing.T) {
	face := func(s gpu.Sample) string {
		text, _, err := facesOf([]gpu.Sample{s})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	idle := face(gpu.Sample{UUID: "a", EnergyJ: 1, PowerW: 50})
	if face(gpu.Sample{UUID: "a", EnergyJ: 2, PowerW: 51}) != idle {
		t.Error("energy is told at once")
	}
	if face(gpu.Sample{UUID: "a", Used: 1}) == idle {
		t.Error("memory is not told at once")
	}
}
