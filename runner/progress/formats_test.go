package progress

import (
	"os"
	"strings"
	"testing"
)

// TestFormats: each format reads its line, with the count that it yields, and does not
// read a line like it that counts nothing.
func TestFormats(t *testing.T) {
	b, err := os.ReadFile("testdata/formats.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]map[string]bool{}
	for row := range strings.Lines(string(b)) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		head, text, _ := strings.Cut(strings.TrimSuffix(row, "\n"), " | ")
		i := strings.LastIndexAny(head, "+-")
		if head[i:] != "-" { // a name may have a dash
			i = strings.LastIndex(head, " +") + 1
		}
		name, sign, want := strings.TrimSpace(head[:i]), head[i:i+1], strings.TrimSpace(head[i+1:])
		if seen[name] == nil {
			seen[name] = map[string]bool{}
		}
		seen[name][sign] = true
		f := formatNamed(name)
		if f == nil {
			t.Errorf("%q is no format", name)
			continue
		}
		m, ok := f.mark(string(clean(nil, []byte(text))))
		switch epoch, isEpoch := strings.CutPrefix(want, "e"); {
		case ok != (sign == "+"):
			t.Errorf("%s: %q is read: %v", name, text, ok)
		case ok && isEpoch && m.epoch != number(epoch):
			t.Errorf("%s: %q yields epoch %g, want %s", name, text, m.epoch, epoch)
		case ok && !isEpoch && m.step != number(want):
			t.Errorf("%s: %q yields step %g, want %s", name, text, m.step, want)
		}
	}
	for _, f := range formats {
		if !seen[f.name]["+"] || !seen[f.name]["-"] {
			t.Errorf("testdata/formats.txt lacks a line that %q reads, or one that it does not", f.name)
		}
	}
}

func formatNamed(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
}
