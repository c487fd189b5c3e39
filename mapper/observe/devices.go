package observe

import (
	"slices"

	"carma/mapper/model"
)

// DevicesChecked records whether the programs of an attempt can open the devices of its
// GPUs.
func (ob *Observer) DevicesChecked(ev model.DevicesChecked) {
	t := ob.TaskByID(ev.Task)
	if t == nil || t.Alive() == nil || t.Alive().N != ev.Attempt {
		return
	}
	a := t.Alive()
	if ev.State == "" {
		a.Devices = nil
		return
	}
	since := ob.Now()
	if a.Devices != nil {
		since = a.Devices.Since
	}
	a.Devices = &model.DeviceLoss{State: ev.State, GPUs: slices.Clone(ev.GPUs), Since: since}
}
