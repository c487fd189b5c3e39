package agent

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"carma/cmd/carma/cli"
	"carma/runner/gpu"
)

func valid() flags {
	return flags{name: "n1", server: "dgx-h100", kubelet: "/k", cdi: "/c", dir: "/d", speed: 1}
}

// TestCheck: wrong flags are refused in one line.
func TestCheck(t *testing.T) {
	f := valid()
	if _, err := f.check(); err != nil {
		t.Fatal(err)
	}
	for say, spoil := range map[string]func(*flags){
		"dgx-h100":                func(f *flags) { f.server = "dgx" },
		"--speed 0":               func(f *flags) { f.speed = 0 },
		"is not an absolute path": func(f *flags) { f.cdi = "cdi" },
	} {
		f := valid()
		spoil(&f)
		if _, err := f.check(); err == nil || cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want %s", err, say)
		}
	}
}

// TestNames: two nodes that pretend to be the same server have GPUs of their own, and a
// node that is started again has the same.
func TestNames(t *testing.T) {
	form := regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, name := range []string{"n1", "n2"} {
		f := valid()
		f.name = name
		first, err := f.check()
		again, _ := f.check()
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

// TestFace: figures that always change are not told at once, memory is.
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

// TestOldName: carma node is the same command, and no list has it.
func TestOldName(t *testing.T) {
	a := cli.New(strings.NewReader(""), io.Discard, io.Discard, "test")
	now, old := Command(a), OldName(a)
	if now.Name() != "agent" || old.Name() != "node" || now.Hidden || !old.Hidden || old.GroupID != "" {
		t.Errorf("%q hidden %v, %q hidden %v in group %q", now.Name(), now.Hidden, old.Name(), old.Hidden, old.GroupID)
	}
	if old.Flags().Lookup("simulate") == nil {
		t.Error("the old name has no flags")
	}
}
