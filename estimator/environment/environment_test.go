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

// The GPUs of a machine select the environment that was measured on their kind,
// if all are of one kind.
func TestFor(t *testing.T) {
	const h100 = "NVIDIA H100 80GB HBM3"
	for _, c := range []struct {
		models []string
		want   string
	}{
		{[]string{h100}, "h100-2026-11"},
		{[]string{h100, "NVIDIA H100 PCIe"}, "h100-2026-11"},
		{[]string{"NVIDIA A100-SXM4-40GB"}, ""},
		{[]string{"NVIDIA A100-SXM4-80GB"}, "a100-80-2025"},
		{[]string{"NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"}, "rtx4090-2025"},
		{[]string{"NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090"}, ""},
		{[]string{"NVIDIA L40S"}, "l40s-2025"},
		{[]string{h100, "NVIDIA A100-SXM4-40GB"}, ""},
		{nil, ""},
	} {
		if got := For(c.models); got != c.want {
			t.Errorf("%q: %q, want %q", c.models, got, c.want)
		}
	}
}
