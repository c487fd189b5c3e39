package environment

import (
	"strings"
	"testing"
)

func TestShipped(t *testing.T) {
	names := Names()
	if len(names) == 0 {
		t.Fatal("no environment ships")
	}
	for _, name := range names {
		e, err := Named(name)
		if err != nil || e.Name != name {
			t.Errorf("%s: got %q (%v)", name, e.Name, err)
		}
		if e.About == "" || e.Fitted == "" {
			t.Errorf("%s does not say what it is, or where its constants come from", name)
		}
		if e.Capacity <= e.ContextFor(true) {
			t.Errorf("%s: a context of %d bytes on a GPU of %d", name, e.ContextFor(true), e.Capacity)
		}
	}
	if e, err := Named(""); err != nil || e.Name != Default {
		t.Errorf("no name: %q (%v), want %s", e.Name, err, Default)
	}
}

func TestUnknown(t *testing.T) {
	_, err := Named("a100-2025-9")
	if err == nil || !strings.Contains(err.Error(), `"a100-2025-9"; nearest is a100-2025-09`) {
		t.Errorf("got %v, want the nearest name", err)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`[{"name":"a","capacity":-1}]`, "environment 1 (a): capacity is -1"},
		{`[{"name":"a"},{"name":"b","context":1099511627777}]`, "environment 2 (b): context"},
		{`[{"name":"a","conv_context":-1}]`, "conv_context"},
		{`[{"name":"a","cublas":-1}]`, "cublas"},
		{`[{"name":"a","workspace_limit":-1}]`, "workspace_limit"},
		{`[{"name":"a","forward":-0.5}]`, "forward is -0.5"},
		{`[{"name":"a","data":101}]`, "data is 101"},
		{`[{"name":"a","filter":-1}]`, "filter"},
		{`[{"name":"a","weight":1e300}]`, "weight"},
		{`[{"capacity":1}]`, "no name"},
		{`[{"name":"a","colour":1}]`, "colour"},
		{`[`, "EOF"},
	} {
		if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
