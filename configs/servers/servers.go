// Package servers describes the GPU servers that carma can simulate: their GPUs, with
// memory, power and speed.
//
// A file has this form (schema carma/server/v1). A group of equal GPUs has either its
// UUIDs, or its count, from which UUIDs are generated:
//
//	schema: carma/server/v1
//	name: dgx-station-a100
//	description: NVIDIA DGX Station A100, 4 x A100 40 GB
//	gpus:
//	  - model: NVIDIA A100-SXM4-40GB
//	    memory_mib: 40960       # nvidia-smi's total
//	    idle_power_w: 53
//	    peak_power_w: 400       # board limit
//	    relative_speed: 1.0     # training speed, A100 = 1
//	    uuids: [GPU-..., ...]   # or count: 4
//	suspend:                    # may be left out: copying to host memory and back
//	  gb_per_s: 5               # 10^9 bytes per second
//	  seconds: 0.2              # beside the copying, for each direction
//
// Comments in each file give the source of each figure. The relative speed is one number
// for all tasks: it is right on average and wrong for each single task.
package servers

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"carma/internal/lazyregexp"
	"carma/internal/units"

	"go.yaml.in/yaml/v3"

	"carma/internal/suggest"
)

//go:embed *.yaml
var files embed.FS

// Server is one machine with GPUs.
type Server struct {
	Name        string
	Description string
	GPUs        []GPU // in the order of their indexes, 0 first
	Copying     Copying
}

// Copying is the speed at which a process is moved off a GPU, and back.
type Copying struct {
	Rate  float64       // bytes per second
	Delay time.Duration // in addition to the copying, per direction
}

// Time returns the duration of copying n bytes in one direction.
func (c Copying) Time(n units.Bytes) time.Duration {
	return c.Delay + time.Duration(float64(n)/c.Rate*float64(time.Second))
}

// defaultCopying is based on two sources. 80 GB took 15 s on an H100 in one direction
// (cuda-checkpoint#29). llm-d's programs resume in 1 to 3 s with little memory; a
// persistent helper process needs no cuInit. 0.2 s is assumed.
var defaultCopying = Copying{Rate: 5e9, Delay: 200 * time.Millisecond}

// GPU is one device of a server.
type GPU struct {
	UUID  string
	Index int
	// Machine is the GPU's machine in a replay of several machines. Files never set it.
	Machine string
	Model   string
	Memory  units.Bytes
	// IdlePower is the power without load, PeakPower the board's power limit, in watts.
	IdlePower, PeakPower float64
	// Speed is the training speed relative to an A100 40 GB, which is 1.
	Speed float64
}

// schema is the only version of the format so far.
const schema = "carma/server/v1"

// Default is the simulated server used if none is named and there is no NVIDIA driver.
const Default = "dgx-station-a100"

// Find returns the shipped server with that name, ignoring case, or reads the YAML file
// with that path. The error lists the nearest names.
func Find(name string) (Server, error) {
	if content, err := files.ReadFile(strings.ToLower(name) + ".yaml"); err == nil {
		return parse(name, content)
	}
	if !strings.ContainsRune(name, filepath.Separator) && filepath.Ext(name) == "" {
		return Server{}, fmt.Errorf("unknown server %q; nearest: %s, or the path of a YAML file", name,
			strings.Join(suggest.Names(name, Names(), 3), ", "))
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return Server{}, fmt.Errorf("read server: %w", err)
	}
	return parse(name, content)
}

// Names lists the shipped servers, sorted.
func Names() []string {
	paths, _ := fs.Glob(files, "*.yaml") // the pattern is valid
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(p, ".yaml")
	}
	return paths
}

type group struct {
	Model     string   `yaml:"model"`
	Count     int      `yaml:"count"`
	UUIDs     []string `yaml:"uuids"`
	MemoryMiB int64    `yaml:"memory_mib"`
	IdlePower float64  `yaml:"idle_power_w"`
	PeakPower float64  `yaml:"peak_power_w"`
	Speed     float64  `yaml:"relative_speed"`
}

func parse(name string, content []byte) (Server, error) {
	var f struct {
		Schema      string  `yaml:"schema"`
		Name        string  `yaml:"name"`
		Description string  `yaml:"description"`
		GPUs        []group `yaml:"gpus"`
		Suspend     *struct {
			Rate  float64 `yaml:"gb_per_s"`
			Delay float64 `yaml:"seconds"`
		} `yaml:"suspend"`
	}
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return Server{}, fmt.Errorf("server %s: %w", name, err)
	}
	if f.Schema != schema {
		return Server{}, fmt.Errorf("server %s: schema %q; this carma reads %s", name, f.Schema, schema)
	}
	s := Server{Name: f.Name, Description: f.Description, Copying: defaultCopying}
	if s.Name == "" {
		return Server{}, fmt.Errorf("server %s: it has no name", name)
	}
	if c := f.Suspend; c != nil {
		if !(c.Rate > 0 && c.Rate <= 1e4 && c.Delay >= 0 && c.Delay <= 3600) {
			return Server{}, fmt.Errorf("server %s: suspend: gb_per_s is %g, seconds %g; an H100 copied 5 GB/s", name, c.Rate, c.Delay)
		}
		s.Copying = Copying{Rate: c.Rate * 1e9, Delay: time.Duration(c.Delay * float64(time.Second))}
	}
	for i, g := range f.GPUs {
		if err := s.add(g); err != nil {
			return Server{}, fmt.Errorf("server %s: gpus, entry %d: %w", name, i+1, err)
		}
	}
	if err := s.check(); err != nil {
		return Server{}, fmt.Errorf("server %s: %w", name, err)
	}
	return s, nil
}

// maxGPUs is larger than the number of GPUs of any server. It keeps a typing error from
// exhausting memory.
const maxGPUs = 64

var uuidForm = lazyregexp.New(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (s *Server) add(g group) error {
	switch {
	case g.Model == "":
		return errors.New("it has no model")
	case g.MemoryMiB < 1 || g.MemoryMiB > 1<<24:
		return fmt.Errorf("memory_mib is %d; an A100 has 40960", g.MemoryMiB)
	case !(g.IdlePower >= 0 && g.PeakPower >= g.IdlePower && g.PeakPower <= 1e5):
		return fmt.Errorf("idle_power_w is %g, peak_power_w %g; an A100 has 53 and 400", g.IdlePower, g.PeakPower)
	case !(g.Speed > 0 && g.Speed <= 1000):
		return fmt.Errorf("relative_speed is %g; an A100 has 1", g.Speed)
	case g.UUIDs == nil && (g.Count < 1 || g.Count > maxGPUs):
		return fmt.Errorf("count is %d; write 1 to %d, or uuids", g.Count, maxGPUs)
	case g.UUIDs != nil && g.Count != 0 && g.Count != len(g.UUIDs):
		return fmt.Errorf("count is %d but there are %d uuids", g.Count, len(g.UUIDs))
	}
	for range g.Count - len(g.UUIDs) {
		g.UUIDs = append(g.UUIDs, s.uuid(len(s.GPUs)+len(g.UUIDs)))
	}
	for _, id := range g.UUIDs {
		s.GPUs = append(s.GPUs, GPU{
			UUID: id, Index: len(s.GPUs), Model: g.Model, Memory: units.Bytes(g.MemoryMiB) * units.MiB,
			IdlePower: g.IdlePower, PeakPower: g.PeakPower, Speed: g.Speed,
		})
	}
	return nil
}

func (s *Server) check() error {
	if len(s.GPUs) < 1 || len(s.GPUs) > maxGPUs {
		return fmt.Errorf("it has %d gpus; 1 to %d are possible", len(s.GPUs), maxGPUs)
	}
	seen := map[string]bool{}
	for _, g := range s.GPUs {
		if !uuidForm().MatchString(g.UUID) {
			return fmt.Errorf("uuid %q does not look like %s", g.UUID, s.uuid(0))
		}
		if seen[g.UUID] {
			return fmt.Errorf("uuid %s is given twice", g.UUID)
		}
		seen[g.UUID] = true
	}
	return nil
}

// uuid generates the UUID of a GPU. It depends only on the server and the index.
func (s *Server) uuid(index int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s/%d", s.Name, index))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
