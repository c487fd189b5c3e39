package textcheck

import (
	"strings"
	"testing"

	"carma/runner/api"
)

// TestSubmit checks that a NUL character and a text over the kernel's limit are refused without
// showing the value of a variable.
func TestSubmit(t *testing.T) {
	long := strings.Repeat("x", maxWord+1)
	for want, s := range map[string]api.Submit{
		"":                          {Image: "i", Command: []string{long[1:]}, Labels: map[string]string{"a": "b"}},
		`-e "SECRET": 131078 bytes`: {Env: []string{"SECRET=" + long[:maxWord]}},
		`-w "/\x00": it has a NUL`:  {ContainerOptions: api.ContainerOptions{WorkDir: "/\x00"}},
		`-l a "a": it has a NUL`:    {Labels: map[string]string{"b": "\x00", "a": "\x00"}},
	} {
		err := Submit(s)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestName checks that numbers and names with other characters are refused, and that an empty
// name is accepted.
func TestName(t *testing.T) {
	for name, ok := range map[string]bool{"": true, "train-1": true, "7": false, "-a": false, "a b": false, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false} {
		if err := Name("--name", name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
