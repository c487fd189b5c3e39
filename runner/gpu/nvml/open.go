//go:build cgo

package nvml

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"carma/mapper/model"
	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/rs/zerolog"
)

// Unavailable is the reason why the GPUs of this machine cannot be read, with the fix.
type Unavailable struct {
	Text string
	Fix  string
	// NoDriver is set if no NVIDIA driver is installed, as on a machine without a GPU.
	NoDriver bool
}

func (e *Unavailable) Error() string { return e.Text }

// Activity is another source of activity, 0 to 1, of a card (instance -1), or of a MIG
// instance by its card's UUID and its GPU instance ID. ok is false if there is no recent
// activity. It must not block.
type Activity interface {
	Activity(uuid string, instance int) (smact, smocc, drama float64, ok bool)
}

// Options contains the settings of a source. The zero value is usable.
type Options struct {
	// Only lists the cards to use, by index in nvidia-smi, by UUID, or by a MIG instance's
	// UUID. If empty, all are used.
	Only []string
	// Activity is read for GPUs on which GPM does not work. It may be nil.
	Activity Activity
	Log      zerolog.Logger
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Root is the folder with /proc and /sys. Empty means /.
	Root string
}

// Source reads the GPUs of this machine. Make one with [Open].
type Source struct {
	opt    Options
	worker *worker
	driver string

	// Only the worker uses these fields and the units:
	lib      lib.Interface
	missing  map[string]bool // symbols, by whether the library lacks them
	events   lib.EventSet
	cards    []*card
	units    []*unit // the list does not change
	owner    gpu.Owner
	checked  time.Time // last check of health
	reviveAt time.Time // time at which the library is initialized again, or zero
	patience time.Duration
	down     string // reason why it could not be initialized again

	mu    sync.Mutex
	notes []string
}

// DriverVersion returns the version of the NVIDIA driver, or "" if unknown.
func (s *Source) DriverVersion() string { return s.driver }

// Library returns the machine's NVML. It is loaded when a source is opened.
func Library() lib.Interface { return lib.New() }

// Open initializes the library and finds the GPUs. The error is an *Unavailable if there
// is nothing to read, or if a GPU in Only does not exist.
func Open(ctx context.Context, library lib.Interface, opt Options) (*Source, error) {
	now := opt.Now
	if now == nil {
		opt.Now = time.Now
	}
	s := &Source{opt: opt, lib: library, worker: newWorker(), missing: map[string]bool{}, owner: nobody}
	failed, err := ask(ctx, s.worker, s.open)
	if err == nil {
		err = failed
	}
	if err != nil {
		s.worker.once.Do(func() { close(s.worker.quit) })
		return nil, err
	}
	if now == nil {
		time.Sleep(gpmLeast) // otherwise the first reading of activity would be coarse
	}
	return s, nil
}

func nobody(int) (model.TaskID, int, bool) { return 0, 0, false }

func (s *Source) open() error {
	if ret := s.lib.Init(); ret != lib.SUCCESS {
		return unavailable(ret)
	}
	s.driver, _ = s.lib.SystemGetDriverVersion()
	if err := s.enumerate(); err != nil {
		s.lib.Shutdown()
		return err
	}
	s.listen()
	for _, u := range s.units {
		u.begin(s)
	}
	return nil
}

// unavailable explains why the library cannot be used.
func unavailable(ret lib.Return) *Unavailable {
	const install = "install the NVIDIA driver, or simulate: carma daemon --gpus sim:dgx-station-a100"
	switch ret {
	case lib.ERROR_LIBRARY_NOT_FOUND:
		return &Unavailable{Text: "the NVIDIA driver's library libnvidia-ml.so.1 was not found", Fix: install, NoDriver: true}
	case lib.ERROR_DRIVER_NOT_LOADED:
		return &Unavailable{
			Text: "the NVIDIA driver is not loaded",
			Fix:  "modprobe nvidia, then look at dmesg; without a GPU: carma daemon --gpus sim:dgx-station-a100",
		}
	case lib.ERROR_LIB_RM_VERSION_MISMATCH:
		return &Unavailable{
			Text: "the NVIDIA driver in the kernel and its library libnvidia-ml.so.1 are of different versions",
			Fix:  "the driver was updated: reload its modules, or restart the machine",
		}
	case lib.ERROR_NO_PERMISSION:
		return &Unavailable{
			Text: "no permission to use the NVIDIA driver",
			Fix:  "run carma daemon as root, or give its user access to /dev/nvidiactl and /dev/nvidia*",
		}
	}
	return &Unavailable{Text: "the NVIDIA driver cannot be used: " + message(ret), Fix: "nvidia-smi should fail as well; look at dmesg"}
}

// message returns the driver's own text for an error.
func message(ret lib.Return) string { return fmt.Sprintf("%s (NVML %d)", ret.Error(), int32(ret)) }

// has reports whether the library has a function. Libraries of older drivers lack the
// newer functions, and calling one would end the program.
func (s *Source) has(symbol string) bool {
	lacks, known := s.missing[symbol]
	if !known {
		lacks = s.lib.Extensions().LookupSymbol(symbol) != nil
		s.missing[symbol] = lacks
	}
	return !lacks
}

// Name implements gpu.Source.
func (s *Source) Name() string {
	if s.driver == "" {
		return "nvml"
	}
	return "nvml, driver " + s.driver
}

// Notes implements gpu.Noting.
func (s *Source) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// note records a sentence for the administrator, once.
func (s *Source) note(text string) {
	s.mu.Lock()
	known := slices.Contains(s.notes, text)
	if !known {
		s.notes = append(s.notes, text)
	}
	s.mu.Unlock()
	if !known {
		s.opt.Log.Warn().Msg(text)
	}
}

// SetOwner implements gpu.Attributing.
func (s *Source) SetOwner(f gpu.Owner) { s.owner = f }

// GPUs implements gpu.Source.
func (s *Source) GPUs(context.Context) ([]gpu.Device, error) {
	out := make([]gpu.Device, len(s.units))
	for i, u := range s.units {
		out[i] = u.device
	}
	return out, nil
}

// Close ends the source. It waits only briefly for a driver that hangs.
func (s *Source) Close() error {
	return s.worker.stop(func() {
		s.release()
		s.lib.Shutdown()
	})
}

// release frees the source's resources in the library.
func (s *Source) release() {
	if s.events != nil {
		s.events.Free()
		s.events = nil
	}
	for _, u := range s.units {
		u.gpm.free()
	}
}
