//go:build cgo

package nvml

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"carma/internal/units"

	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// answer is the source's result for a library.
type answer struct {
	Name    string
	Devices []gpu.Device
	Sample  gpu.Sample
}

// driverVariable names the library for a separate run of the test binary: in one process, a
// function that was looked up stays bound to its library.
const driverVariable = "CARMA_TEST_NVML"

// TestDriver loads libraries like the driver's: an old one without the newer functions, and
// one with them.
func TestDriver(t *testing.T) {
	if path := os.Getenv(driverVariable); path != "" {
		readDriver(t, path)
		return
	}
	headers, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	warnings := []string{"a memory error that ended one program; reset the GPU when convenient (Xid 94)", "4 uncorrectable memory errors since the driver was loaded"}
	for name, tt := range map[string]struct {
		flags []string
		want  answer
	}{
		"old": {nil, answer{
			"nvml, driver 1.2.3", []gpu.Device{{UUID: "GPU-thin", Model: "NVIDIA Thin", Capacity: 16 * units.GiB}},
			gpu.Sample{
				UUID: "GPU-thin", Used: 3 * units.GiB, SMACT: 0.8, SMOCC: 0.8, DRAMA: 0.2, Metrics: gpu.MetricsUtilization, Coarse: true,
				PowerW: 123, CounterJ: 1, TemperatureC: 55, ECCErrors: 4, Warnings: warnings,
				Processes: []gpu.Process{{PID: 11, Used: units.GiB}, {PID: 12, Used: 2 * units.GiB}},
			},
		}},
		"new": {[]string{"-DNEW"}, answer{
			"nvml, driver 1.2.3", []gpu.Device{{UUID: "GPU-thin", Model: "NVIDIA Thin", Capacity: 15 * units.GiB}},
			gpu.Sample{
				UUID: "GPU-thin", Used: 2 * units.GiB, SMACT: 0.5, SMOCC: 0.25, DRAMA: 0.25, Metrics: gpu.MetricsGPM,
				PowerW: 123, CounterJ: 1, TemperatureC: 55, ECCErrors: 4, Warnings: append(warnings, "memory rows wait to be replaced; reset the GPU when convenient"),
				Processes: []gpu.Process{{PID: 11, Used: units.GiB, Active: 0.4, Timed: true}, {PID: 13, Used: units.GiB, Client: true}}, ClientsTold: true,
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
			build := append([]string{"-shared", "-fPIC", "-w", "-I", strings.TrimSpace(string(headers)), "-o", path}, tt.flags...)
			if out, err := exec.Command("cc", append(build, "testdata/driver.c")...).CombinedOutput(); err != nil {
				t.Fatalf("cc: %v\n%s", err, out)
			}
			run := exec.Command(os.Args[0], "-test.run=^TestDriver$", "-test.v")
			run.Env = append(os.Environ(), driverVariable+"="+path)
			out, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, text, _ := strings.Cut(string(out), "ANSWER ")
			text, _, _ = strings.Cut(text, "\n")
			var got answer
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// readDriver prints the source's result for the library at a path.
func readDriver(t *testing.T, path string) {
	var shift time.Duration // GPM needs some time between its samples
	s, err := Open(context.Background(), lib.New(lib.WithLibraryPath(path)), Options{Now: func() time.Time { shift += time.Second; return time.Unix(0, 0).Add(shift) }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(answer{s.Name(), devices(t, s), got[0]})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("ANSWER " + string(text) + "\n")
}
