package environment

import (
	"strings"
	"testing"
)

func TestShippedEnvironments(t *testing.T) {
	for _, name := range append(Names(), "") {
		e, err := Named(name)
		if err != nil || e.Context <= 0 || e.Capacity <= e.Context || e.About == "" || e.Fitted == "" {
			t.Errorf("%q: %+v (%v)", name, e, err)
		}
	}
	if _, err := Named("a100-2052-09"); err == nil || !strings.Contains(err.Error(), "nearest is a100-2025-09") {
		t.Errorf("unknown environment: %v", err)
	}
}

func TestBadEnvironmentsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[{"name":"x","context":-1}]`:                "environment 1 (x): context is -1 bytes",
		`[{"name":"x","forward":-0.5}]`:              "environment 1 (x): forward is -0.5",
		`[{"name":"x","capacity":9e15}]`:             "capacity",
		`[{"context":1}]`:                            "it has no name",
		`[{"name":"x","capacity":5,"context":9}]`:    "environment 1 (x): its capacity, 5 bytes, is not above its context",
		`[{"name":"x"},{"name":"x"}]`:                "environment 2 (x): there is another of that name",
		`[{"name":"x","allocator":{"MaxSplit":-1}}]`: "allocator max split is -1",
		`[{"name":"x","kontext":1}]`:                 "kontext",
		`[{"name":"x","context":"much"}]`:            "context",
		`[`:                                          "EOF",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
