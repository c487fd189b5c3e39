package trial

import (
	"context"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
)

// TestName checks that a name is in use until the trial is over, and is not used twice.
func TestName(t *testing.T) {
	all := New(nil, "abc")
	name, over := all.Name("doctor")
	other, _ := all.Name("doctor")
	if !strings.HasPrefix(name, "carma-abc-doctor-") || name == other || !all.Has(name) || all.Has("carma-abc-doctor-x") {
		t.Errorf("%q, %q", name, other)
	}
	if over(); all.Has(name) || !all.Has(other) {
		t.Error("the wrong trial is over")
	}
}

// TestRun checks that the output of a container is returned, and a failure with it.
func TestRun(t *testing.T) {
	engine := containerstest.NewFake()
	for image, code := range map[string]int{"good": 0, "bad": 3} {
		engine.AddImage(image, containerstest.Image{Run: func(_ context.Context, p *containerstest.Process) int {
			p.Out("a line")
			p.Out("the last")
			return code
		}})
		id, err := engine.Create(t.Context(), containers.Spec{Name: image, Image: image})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := New(engine, "abc").Run(t.Context(), id)
		if !slices.Equal(lines, []string{"a line", "the last"}) || (err != nil) != (code != 0) || err != nil && !strings.Contains(err.Error(), "ended with code 3: a line; the last") {
			t.Errorf("%s: %q, %v", image, lines, err)
		}
	}
}
