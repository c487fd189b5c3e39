package agent

import (
	"io"
	"strings"
	"testing"

	"carma/cmd/carma/cli"
)

// TestOldName: carma node is the same command, and no list has it.
func TestOldName(t *testing.T) {
	a := cli.New(strings.NewReader(""), io.Discard, io.Discard, "test")
	now, old := Command(a, nil), OldName(a, nil)
	if now.Name() != "agent" || old.Name() != "node" || now.Hidden || !old.Hidden || old.GroupID != "" {
		t.Errorf("%q hidden %v, %q hidden %v in group %q", now.Name(), now.Hidden, old.Name(), old.Hidden, old.GroupID)
	}
	if old.Flags().Lookup("simulate") == nil {
		t.Error("the old name has no flags")
	}
}
