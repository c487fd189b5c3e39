package inventory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// source is a gpu.Source of a cluster, which remembers broken GPUs.
type source struct {
	gpu.Source
	devices []gpu.Device
	fails   error
	news    chan struct{}
	broken  map[string]string
}

func (s *source) Name() string { return "test" }

func (s *source) GPUs(context.Context) ([]gpu.Device, error) { return s.devices, s.fails }

func (s *source) News() <-chan struct{} { return s.news }

func (s *source) Remember(_ context.Context, uuid, fault string, _ bool) error {
	if uuid == "GPU-b" {
		return errors.New("unknown")
	}
	s.broken[uuid] = fault
	return nil
}

func (s *source) Forgive(_ context.Context, uuid string) error { delete(s.broken, uuid); return nil }

func newSource() *source {
	return &source{
		news: make(chan struct{}), broken: map[string]string{},
		devices: []gpu.Device{{UUID: "GPU-b", Index: 1, Capacity: 80 * units.GiB}, {UUID: "GPU-a", Capacity: 40 * units.GiB, Boot: "other"}},
	}
}

// TestGPUsChange: a GPU that its source no longer lists stays known but is not listed. A list
// that cannot be read changes nothing.
func TestGPUsChange(t *testing.T) {
	s := newSource()
	g, err := New(t.Context(), s, "boot", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ids := func() (all []string) {
		for _, d := range g.Listed() {
			all = append(all, string(d.ID)+" "+d.Boot)
		}
		return all
	}
	if got := ids(); !slices.Equal(got, []string{"GPU-a other", "GPU-b boot"}) {
		t.Errorf("listed are %v", got)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	changed := make(chan struct{})
	go g.Follow(ctx, func() { changed <- struct{}{} })
	s.devices = s.devices[:1]
	s.news <- struct{}{}
	<-changed
	if got := ids(); !slices.Equal(got, []string{"GPU-b boot"}) || g.Capacity("GPU-a") != 40*units.GiB {
		t.Errorf("listed are %v; of the other %s is known", got, g.Capacity("GPU-a"))
	}
	if least, most := g.Capacities(); least != 40*units.GiB || most != 80*units.GiB {
		t.Errorf("from %s to %s", least, most)
	}
	if got := g.Text([]model.GPUID{"GPU-b", "GPU-a", "GPU-x"}); got != "GPUs GPU-x, 0, 1" {
		t.Errorf("named %s", got)
	}
	s.fails = errors.New("no answer")
	s.news <- struct{}{}
	s.news <- struct{}{} // the list before was read
	if got := ids(); !slices.Equal(got, []string{"GPU-b boot"}) {
		t.Errorf("listed are %v", got)
	}
}

// TestRemember: a fault of this boot is passed to the source, until it is forgiven.
func TestRemember(t *testing.T) {
	s := newSource()
	g, err := New(t.Context(), s, "boot", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	of := func(id model.GPUID, boot string) model.GPU {
		return model.GPU{GPUInfo: model.GPUInfo{ID: id}, Persistent: &model.GPUFault{Boot: boot, Fault: "Xid 48"}}
	}
	broken := g.Remember(t.Context(), []model.GPU{of("GPU-a", "boot"), of("GPU-b", "boot"), of("GPU-c", "before"), {}})
	if !slices.Equal(broken, []model.GPUID{"GPU-a"}) || len(s.broken) != 1 || s.broken["GPU-a"] != "Xid 48" {
		t.Errorf("broken are %v, the source knows %v", broken, s.broken)
	}
	g.Forgive(t.Context(), broken)
	if len(s.broken) > 0 {
		t.Errorf("the source still knows %v", s.broken)
	}
}

// TestAttachment: a configured mode is used without a check, and a GPU that is in no CDI file is
// missing.
func TestAttachment(t *testing.T) {
	g, err := New(t.Context(), newSource(), "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := `{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"GPU-a","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}}]}`
	if err := os.WriteFile(filepath.Join(dir, "n.json"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	a := NewAttachment(g, containers.AttachCDI, "docker", func() containers.Engine { return containers.Engine{CDIDirs: []string{dir}} })
	if mode, why, err := a.Mode(); err != nil || mode != containers.AttachCDI || why != "as configured" {
		t.Errorf("%s, %q, %v", mode, why, err)
	}
	if got := a.Nodes(containers.AttachCDI, []string{"GPU-a"}); !slices.Equal(got, []string{"/dev/nvidia0"}) {
		t.Errorf("nodes %q", got)
	}
	if err := a.missingCDI([]string{dir}); err == nil {
		t.Error("GPU-b is in no CDI file, and nothing is missing")
	}
	if !a.Refuse() || a.Refuse() {
		t.Error("only the first refusal is news")
	}
}
