package look

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestScript checks that modules are joined in the order of their imports, without duplicates,
// and that modules that cannot be joined cause an error.
func TestScript(t *testing.T) {
	files := func(pairs ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		}
		return m
	}
	got, err := Script(files(
		"main.js", "import { a } from './a.js';\nimport { b } from './b.js';\na(b);\n",
		"a.js", "import { b } from './b.js';\nexport function a() { b(); }\n",
		"b.js", "export const b = 1;\n",
	), "main.js")
	if want := "const b = 1;\nfunction a() { b(); }\na(b);\n"; err != nil || got != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
	if got, err = Script(files("main.js", "import { h } from './dom.js';\n"), "main.js"); err != nil || !strings.Contains(got, "\nfunction h(") {
		t.Errorf("with a module of this package: %v", err)
	}
	for want, f := range map[string]fstest.MapFS{
		"main.js: no module x.js":                        files("main.js", "import { x } from './x.js';\n"),
		"b.js and main.js both have b":                   files("main.js", "import { b } from './b.js';\nfunction b() {}\n", "b.js", "export const b = 1;\n"),
		"only import { names } can be joined":            files("main.js", "import * as b from './b.js';\n", "b.js", ""),
		"main.js: an import or export that cannot be jo": files("main.js", "const a = 1;\nexport default a;\n"),
	} {
		if _, err := Script(f, "main.js"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
