package mapper

import (
	"slices"

	"carma/mapper/model"
)

// The states.
const (
	// DevicesDenied: the device rules of the container's control group forbid it.
	DevicesDenied model.DeviceState = "denied"
	// DevicesGone: the device nodes were removed, or no driver serves them.
	DevicesGone model.DeviceState = "gone"
)

func (s *State) devicesChecked(ev model.DevicesChecked) {
	t := s.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.Alive().N != ev.Attempt {
		return
	}
	a := t.Alive()
	if ev.State == "" {
		a.Devices = nil
		return
	}
	since := s.Now()
	if a.Devices != nil {
		since = a.Devices.Since
	}
	a.Devices = &model.DeviceLoss{State: ev.State, GPUs: slices.Clone(ev.GPUs), Since: since}
}
