package evaluate

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const mlp = "input_size,batch_size,layers,max_gpu_mem_mib\n"
	cases, skipped, err := Read(strings.NewReader(mlp+"7,3,linear:5:40;relu:5:0,900\n7,3,linear:5:40,\n"), nil)
	if err != nil || skipped != 1 || len(cases) != 1 {
		t.Fatalf("%d cases, %d skipped (%v), want one of each", len(cases), skipped, err)
	}
	if c := cases[0]; c.Set != MLP || c.Row != 2 || c.Batch != 3 || c.Measured != 900<<20 || len(c.Config.Layers) != 2 {
		t.Errorf("got %+v", c)
	}
	for _, c := range []struct{ text, want string }{
		{"a,b\n", "line 1: columns a,b are those of no known format"},
		{"", "line 1: no header"},
		{mlp + "7,0,linear:5:40,900\n", `line 2: batch_size "0"`},
		{mlp + "7,3,linear:5:40,900\n7,3,linear:5,900\n", "line 3: layer 1"},
		{mlp + "7,3,cube:5:40,900\n", `unknown type "cube"`},
		{mlp + "7,3,linear:5:40,-1\n", "max_gpu_mem_mib"},
	} {
		if _, _, err := Read(strings.NewReader(c.text), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
