package servers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
)

func TestShippedServers(t *testing.T) {
	for _, c := range []struct {
		name   string
		gpus   int
		memory units.Bytes
		speed  float64
	}{
		{"dgx-station-a100", 4, 40 * units.GiB, 1},
		{"dgx-h100", 8, 81559 * units.MiB, 1.8},
		{"rtx2080ti", 4, 11 * units.GiB, 0.65},
	} {
		s, err := Find(strings.ToUpper(c.name))
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != c.name || len(s.GPUs) != c.gpus {
			t.Errorf("%s: %s with %d GPUs", c.name, s.Name, len(s.GPUs))
		}
		for i, g := range s.GPUs {
			if g.Index != i || g.Memory != c.memory || g.Speed != c.speed {
				t.Errorf("%s: GPU %d: %+v", c.name, i, g)
			}
			if g.UUID != s.uuid(i) { // written in the file, but made by the same function
				t.Errorf("%s: GPU %d has UUID %s", c.name, i, g.UUID)
			}
		}
	}
	if want := []string{"dgx-h100", "dgx-station-a100", "rtx2080ti"}; !slices.Equal(Names(), want) {
		t.Errorf("names %q", Names())
	}
}

const valid = `schema: carma/server/v1
name: lab
gpus:
  - {model: A, memory_mib: 1024, idle_power_w: 10, peak_power_w: 100, relative_speed: 0.5, count: 2}
  - {model: B, memory_mib: 2048, idle_power_w: 10, peak_power_w: 100, relative_speed: 1, uuids: [GPU-00000000-0000-0000-0000-000000000001]}
`

func TestCopying(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // of 10 GB, or 0 if refused
	}{
		{"", 2200 * time.Millisecond},
		{"suspend: {gb_per_s: 20, seconds: 1}", 1500 * time.Millisecond},
		{"suspend: {gb_per_s: 10}", time.Second},
		{"suspend: {seconds: 1}", 0},
		{"suspend: {gb_per_s: .inf}", 0},
		{"suspend: {gb_per_s: 5, seconds: -1}", 0},
		{"suspend: {rate: 5}", 0},
	} {
		s, err := parse("lab", []byte(valid+c.text+"\n"))
		if (err != nil) != (c.want == 0) || err == nil && s.Copying.Time(10e9) != c.want {
			t.Errorf("%s: %+v, %v", c.text, s.Copying, err)
		}
	}
}

func TestFileOfTheUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	if err := os.WriteFile(path, []byte(valid), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Find(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.GPUs) != 3 || s.GPUs[1].Model != "A" || s.GPUs[2].Index != 2 || s.GPUs[0].UUID == s.GPUs[1].UUID {
		t.Errorf("%+v", s.GPUs)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"v1", "v2", `schema "carma/server/v2"; this carma reads carma/server/v1`},
		{"name: lab", "name: ''", "it has no name"},
		{"name: lab", "nane: lab", "field nane not found"},
		{"model: A, ", "", "gpus, entry 1: it has no model"},
		{"1024", "0", "memory_mib is 0"},
		{"peak_power_w: 100", "peak_power_w: 9", "idle_power_w is 10, peak_power_w 9"},
		{"relative_speed: 0.5", "relative_speed: .nan", "relative_speed is NaN"},
		{"count: 2", "count: 65", "count is 65; write 1 to 64"},
		{"count: 2", "count: 0", "count is 0; write 1 to 64"},
		{"uuids: [", "count: 3, uuids: [", "count is 3 but there are 1 uuids"},
		{"uuids: [", "uuids: [GPU-1, ", `uuid "GPU-1" does not look like GPU-`},
		{"uuids: [", "uuids: [GPU-00000000-0000-0000-0000-000000000001, ", "is given twice"},
		{valid[strings.Index(valid, "  - "):], "", "it has 0 gpus"},
	} {
		_, err := parse("lab.yaml", []byte(strings.Replace(valid, c.old, c.new, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), "server lab.yaml: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v", c.old, c.new, err)
		}
	}
	for name, want := range map[string]string{
		"dgx-a100":      "unknown server \"dgx-a100\"; nearest: dgx-h100, ",
		"":              "unknown server",
		"none/lab.yaml": "read server: open none/lab.yaml: no such file",
		"../servers":    "read server",
	} {
		if _, err := Find(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
