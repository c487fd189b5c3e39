//go:build cgo

package nvml

import (
	"context"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"

	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Sample implements gpu.Source.
func (s *Source) Sample(ctx context.Context) ([]gpu.Sample, error) {
	return ask(ctx, s.worker, s.sample)
}

func (s *Source) sample() []gpu.Sample {
	now := s.opt.Now()
	s.revive(now)
	s.hear()
	if s.down == "" && (s.checked.IsZero() || now.Sub(s.checked) >= healthEvery) {
		s.checked = now
		for _, c := range s.cards {
			s.examine(c)
		}
	}
	out := make([]gpu.Sample, len(s.units))
	for _, c := range s.cards {
		p := s.physical(c, now)
		for _, u := range c.units {
			out[slices.Index(s.units, u)] = s.unit(u, p, now)
		}
	}
	return out
}

// begin prepares a unit for sampling.
func (u *unit) begin(s *Source) {
	u.last.UUID = u.device.UUID
	u.gpm = s.newGPM(u)
}

// physical contains the readings of a card as a whole: watts, degrees Celsius, joules.
// own is the card's own counter in joules, or 0 if it cannot be read.
type physical struct {
	power, temperature, joules, own float64
}

const (
	mostTemperature = 150 // degrees Celsius
)

func (s *Source) physical(c *card, now time.Time) (p physical) {
	if s.down != "" {
		p.joules = c.meter.joules
		return p
	}
	if mw, ret := c.handle.GetPowerUsage(); ret == lib.SUCCESS && float64(mw)/1000 <= mostPower {
		p.power = float64(mw) / 1000
	}
	if t, ret := c.handle.GetTemperature(lib.TEMPERATURE_GPU); ret == lib.SUCCESS && t <= mostTemperature {
		p.temperature = float64(t)
	}
	mj, ret := c.handle.GetTotalEnergyConsumption()
	counted := ret == lib.SUCCESS && mj != unknown
	p.joules = c.meter.read(now, mj, counted, p.power)
	if counted {
		p.own = float64(mj) / 1000
	}
	return p
}

// tolerated is the largest number of consecutive failed readings before the GPU counts as
// faulty, because a short failure should not take it out of service.
const tolerated = 2

// unit reads one GPU. Figures that cannot be read keep their values.
func (s *Source) unit(u *unit, p physical, now time.Time) gpu.Sample {
	out := u.last
	out.PowerW, out.EnergyJ, out.TemperatureC = p.power*u.share, p.joules*u.share, p.temperature
	if out.CounterJ = p.own; u.instance >= 0 {
		out.CounterJ = 0 // the counter belongs to its card
	}
	out.ECCErrors, out.Warnings, out.Fault = u.ecc, slices.Concat(u.warnings, u.weak), u.fault()
	out.Lasts, out.Told = u.lasts(), u.told
	if s.down != "" {
		out.Fault = s.down
		return s.keep(u, out)
	}
	m, ret := s.memory(u)
	switch {
	case lost(ret):
		if !u.lost {
			s.opt.Log.Error().Str("gpu", u.device.UUID).Str("reason", message(ret)).Msg("the GPU is lost")
		}
		u.bad, u.lost = tolerated+1, true
		if out.Fault == "" {
			out.Fault = lostText(ret, u)
		}
		return s.keep(u, out)
	case ret != lib.SUCCESS:
		return s.keep(u, u.spoilt(out, "its memory cannot be read: "+message(ret)))
	case m.total == 0 || m.total > mostMemory || m.used > m.total:
		return s.keep(u, u.spoilt(out, fmt.Sprintf("the driver returns impossible figures: %d bytes in use of %d", m.used, m.total)))
	}
	if u.lost { // it was lost and is back, so it was reset
		s.opt.Log.Info().Str("gpu", u.device.UUID).Msg("the GPU is back")
		u.lost, u.warnings = false, nil
		u.mended()
		out.Fault, out.Warnings = u.fault(), slices.Clone(u.weak)
		out.Lasts, out.Told = u.lasts(), u.told
	}
	u.bad, u.seen = 0, true
	used := m.used
	if !m.net {
		used -= min(used, u.reserved)
	}
	out.Used = min(units.Bytes(used), u.device.Capacity)
	list, _, told := s.listed(u)
	out.ClientsTold = told
	var guessed int
	if out.Processes, guessed = s.processes(list, out.Used); guessed > 1 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the driver does not tell the memory of %d processes; it is taken to be the same", guessed))
	}
	s.time(u, list, out.Processes, now)
	s.activity(u, &out, len(list) > 0, now)
	return s.keep(u, out)
}

func (s *Source) keep(u *unit, out gpu.Sample) gpu.Sample {
	u.last = out
	return out
}

// spoilt counts a failed reading. The GPU is faulty if more than tolerated fail
// in a row, or the first one does.
func (u *unit) spoilt(out gpu.Sample, why string) gpu.Sample {
	u.bad++
	if out.Fault == "" && (u.bad > tolerated || !u.seen) {
		out.Fault = why
	}
	return out
}

// activity reads a unit's activity from the best source.
func (s *Source) activity(u *unit, out *gpu.Sample, used bool, now time.Time) {
	if a, ok := u.gpm.measure(now); ok {
		out.SMACT, out.SMOCC, out.DRAMA = a.smact, a.smocc, a.drama
		out.Metrics, out.Coarse = gpu.MetricsGPM, false
		return
	}
	if s.opt.Activity != nil {
		if smact, smocc, drama, ok := s.opt.Activity.Activity(u.uuid, u.instance); ok {
			out.SMACT, out.SMOCC, out.DRAMA = smact, smocc, drama
			out.Metrics, out.Coarse = gpu.MetricsDCGM, false
			return
		}
	}
	// The time in which any kernel runs is an upper bound of the SM activity, which is an
	// upper bound of the occupancy.
	if rates, ret := u.handle.GetUtilizationRates(); u.instance < 0 && ret == lib.SUCCESS && rates.Gpu <= 100 && rates.Memory <= 100 {
		busy := float64(rates.Gpu) / 100
		out.SMACT, out.SMOCC, out.DRAMA = busy, busy, float64(rates.Memory)/100
		out.Metrics, out.Coarse = gpu.MetricsUtilization, true
		return
	}
	busy := 0.0
	if used {
		busy = 1
	}
	out.SMACT, out.SMOCC, out.DRAMA = busy, busy, busy
	out.Metrics, out.Coarse = gpu.MetricsNone, true
}

// lost reports whether an error means that the GPU is gone.
func lost(ret lib.Return) bool {
	switch ret {
	case lib.ERROR_GPU_IS_LOST, lib.ERROR_RESET_REQUIRED, lib.ERROR_UNINITIALIZED, lib.ERROR_NOT_FOUND, lib.ERROR_INVALID_ARGUMENT, lib.ERROR_DRIVER_NOT_LOADED:
		return true
	}
	return false
}

func lostText(ret lib.Return, u *unit) string {
	switch {
	case ret == lib.ERROR_GPU_IS_LOST:
		return "the GPU is lost: it has fallen off the bus or is otherwise inaccessible; restart the machine"
	case ret == lib.ERROR_RESET_REQUIRED:
		return fmt.Sprintf("the GPU must be reset: stop the daemon, nvidia-smi --gpu-reset -i %d, start it again", u.index)
	case u.instance >= 0:
		return "the MIG instance is gone; restart the daemon to use the present instances"
	}
	return "the driver does not know the GPU any more: " + message(ret)
}
