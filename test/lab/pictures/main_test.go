package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicture: colours, areas and wide characters have the same places as on the terminal; the
// picture is valid XML for any screen.
func TestPicture(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	for name, text := range map[string]string{one: "\x1b[1;32m17\x1b[0;32m██░░\x1b[0m a < b & \"c\"\n\x1b[7mhead\x1b[0m 模型 end\n", two: "plain\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := run(&out, []string{one, two}, 20, 2, 4); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		`<text x="0.0" y="13.5" fill="#7ee787" textLength="16.8" lengthAdjust="spacingAndGlyphs" xml:space="preserve" font-weight="bold" opacity="1">17<`,
		`<rect x="16.8" y="1.0" width="16.8" height="16" fill="#7ee787" opacity="1"/>`,
		`<rect x="33.6" y="1.0" width="16.8" height="16" fill="#7ee787" opacity="0.35"/>`,
		`<rect x="0.0" y="18.0" width="33.6" height="18" fill="#c9d1d9"/><text x="0.0" y="31.5" fill="#0d1117"`,
		`textLength="67.2" lengthAdjust="spacingAndGlyphs" xml:space="preserve" opacity="1">模型 end<`, // 2 + 2 + 1 + 3 cells
		".s1{visibility:hidden}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	d := xml.NewDecoder(&out)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := run(io.Discard, []string{one}, 20, 1, 4); err == nil || !strings.Contains(err.Error(), "2 lines, more than 1") {
		t.Errorf("a screen that is too high: %v", err)
	}
	if err := run(io.Discard, nil, 20, 1, 4); err == nil {
		t.Error("no screens, no error")
	}
}
