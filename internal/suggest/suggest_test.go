package suggest

import (
	"slices"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"kitten", "sitting", 3}, {"resnet5", "resnet50", 1}, {"vgg", "vgg16", 2}, {"lgu", "lug", 1},
		{strings.Repeat("x", 500), "x", 500},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%.10q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if Distance(c.a, c.b) != Distance(c.b, c.a) {
			t.Errorf("Distance(%.10q, %q) is not symmetric", c.a, c.b)
		}
	}
}

func TestNames(t *testing.T) {
	names := []string{"first-fit", "best-fit", "magm", "lug", "mug"}
	if got, want := Names("Lugg", names, 2), []string{"lug", "mug"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Names("first", []string{"mist", "first-fit"}, 1); got[0] != "first-fit" {
		t.Errorf("got %q for its beginning", got)
	}
	if got := Names("x", nil, 3); got != nil {
		t.Errorf("got %q from no names", got)
	}
	if got := Names("x", names, 99); len(got) != len(names) {
		t.Errorf("got %d names of %d", len(got), len(names))
	}
}
