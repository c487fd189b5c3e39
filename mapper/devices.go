package mapper

import (
	"slices"

	"carma/internal/units"
)

// DeviceState says why the programs of an attempt cannot open the devices of its GPUs.
type DeviceState string

// The states.
const (
	// DevicesDenied: the device rules of the container's control group forbid it.
	DevicesDenied DeviceState = "denied"
	// DevicesGone: the device nodes were removed, or no driver serves them.
	DevicesGone DeviceState = "gone"
)

// DevicesChecked reports that the programs of a running attempt can no longer open the
// devices of its GPUs, or can open them again. It is for the record and leads to no
// decision: a program that has a GPU open keeps using it.
type DevicesChecked struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// State is empty if all devices can be opened.
	State DeviceState `json:"state,omitempty"`
	// GPUs are the GPUs whose devices cannot be opened, if known.
	GPUs []GPUID `json:"gpus,omitempty"`
}

func (e DevicesChecked) when() units.Instant { return e.At }

func (DevicesChecked) kind() string { return "devices-checked" }

func (e DevicesChecked) about() TaskID { return e.Task }

// DeviceLoss says that an attempt can no longer open the devices of its GPUs.
type DeviceLoss struct {
	State DeviceState   `json:"state"`
	GPUs  []GPUID       `json:"gpus,omitempty"`
	Since units.Instant `json:"since"`
}

func (s *State) devicesChecked(ev DevicesChecked) {
	t := s.tasks[ev.Task]
	if t == nil || t.Alive() == nil || t.Alive().N != ev.Attempt {
		return
	}
	a := t.Alive()
	if ev.State == "" {
		a.Devices = nil
		return
	}
	since := s.now
	if a.Devices != nil {
		since = a.Devices.Since
	}
	a.Devices = &DeviceLoss{State: ev.State, GPUs: slices.Clone(ev.GPUs), Since: since}
}
