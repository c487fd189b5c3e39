package containerstest

import (
	"testing"

	"carma/containers"
)

func TestFakeSuite(t *testing.T) {
	f := NewFake()
	f.CheckMounts = true
	f.AddImage("tool", ToolImage())
	t.Cleanup(f.Shutdown)
	Suite(t, func(*testing.T) containers.Driver { return f }, Images{Tool: "tool", Missing: "missing"})
}
