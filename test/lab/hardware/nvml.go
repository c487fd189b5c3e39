//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"carma/runner/gpu"
	"carma/runner/gpu/nvml"
)

// openCard opens the driver's library for one card.
func openCard(ctx context.Context, which string) (gpu.Source, error) {
	return nvml.Open(ctx, nvml.Library(), nvml.Options{Only: []string{which}})
}

// settings are driver settings that can be read without changing anything. A
// function that the library or the card lacks gives no row.
func settings(library lib.Interface, uuid string) []fact {
	var facts []fact
	has := func(symbol string) bool { return library.Extensions().LookupSymbol(symbol) == nil }
	tell := func(name, symbol string, ask func() (string, lib.Return)) {
		if !has(symbol) {
			return
		}
		if value, ret := ask(); ret == lib.SUCCESS {
			facts = append(facts, fact{name, value})
		}
	}
	if library.Init() != lib.SUCCESS {
		return nil
	}
	defer func() { _ = library.Shutdown() }()
	tell("driver", "nvmlSystemGetDriverVersion", library.SystemGetDriverVersion)
	tell("CUDA of the driver", "nvmlSystemGetCudaDriverVersion_v2", func() (string, lib.Return) {
		v, ret := library.SystemGetCudaDriverVersion_v2()
		return fmt.Sprintf("%d.%d", v/1000, v%1000/10), ret
	})
	device, ret := library.DeviceGetHandleByUUID(uuid)
	if ret != lib.SUCCESS {
		return facts
	}
	return append(facts, cardSettings(device, has)...)
}

// minor returns the number N of a card's /dev/nvidiaN.
func minor(library lib.Interface, uuid string) (int, error) {
	if ret := library.Init(); ret != lib.SUCCESS {
		return 0, fmt.Errorf("NVML: %v", ret)
	}
	defer func() { _ = library.Shutdown() }()
	device, ret := library.DeviceGetHandleByUUID(uuid)
	if ret != lib.SUCCESS {
		return 0, fmt.Errorf("NVML: %s: %v", uuid, ret)
	}
	if err := library.Extensions().LookupSymbol("nvmlDeviceGetMinorNumber"); err != nil {
		return 0, fmt.Errorf("NVML: minor number of %s: %w", uuid, err)
	}
	n, ret := device.GetMinorNumber()
	if ret != lib.SUCCESS {
		return 0, fmt.Errorf("NVML: minor number of %s: %v", uuid, ret)
	}
	return n, nil
}

// listClients asks the driver for the processes on a card, and which of them are
// clients of MPS.
func listClients(uuid string) (onCard, error) { return clientsOn(lib.New(), uuid) }

func clientsOn(library lib.Interface, uuid string) (onCard, error) {
	if ret := library.Init(); ret != lib.SUCCESS {
		return nil, fmt.Errorf("NVML: %v", ret)
	}
	defer func() { _ = library.Shutdown() }()
	device, ret := library.DeviceGetHandleByUUID(uuid)
	if ret != lib.SUCCESS {
		return nil, fmt.Errorf("NVML: %s: %v", uuid, ret)
	}
	// go-nvml uses the newest version of a function in the library.
	if library.Extensions().LookupSymbol("nvmlDeviceGetMPSComputeRunningProcesses_v3") != nil && library.Extensions().LookupSymbol("nvmlDeviceGetMPSComputeRunningProcesses_v2") != nil {
		return nil, errors.New("NVML: the driver has no list of MPS clients")
	}
	found := onCard{}
	all, ret := device.GetComputeRunningProcesses()
	if ret != lib.SUCCESS {
		return nil, fmt.Errorf("NVML: processes of %s: %v", uuid, ret)
	}
	for _, p := range all {
		found[int(p.Pid)] = false
	}
	clients, ret := device.GetMPSComputeRunningProcesses()
	if ret != lib.SUCCESS {
		return nil, fmt.Errorf("NVML: MPS clients of %s: %v", uuid, ret)
	}
	for _, p := range clients {
		found[int(p.Pid)] = true
	}
	return found, nil
}

func driverFacts(uuid string) []fact { return settings(lib.New(), uuid) }

func minorOf(uuid string) (int, error) { return minor(lib.New(), uuid) }

// cardSettings returns the settings of one card.
func cardSettings(device lib.Device, has func(string) bool) (facts []fact) {
	tell := func(name, symbol string, ask func() (any, lib.Return)) {
		if !has(symbol) {
			return
		}
		if value, ret := ask(); ret == lib.SUCCESS {
			facts = append(facts, fact{name, fmt.Sprint(value)})
		}
	}
	tell("compute capability", "nvmlDeviceGetCudaComputeCapability", func() (any, lib.Return) {
		major, minor, ret := device.GetCudaComputeCapability()
		return fmt.Sprintf("%d.%d", major, minor), ret
	})
	tell("power limit, W", "nvmlDeviceGetEnforcedPowerLimit", func() (any, lib.Return) {
		mw, ret := device.GetEnforcedPowerLimit()
		return mw / 1000, ret
	})
	tell("compute mode", "nvmlDeviceGetComputeMode", func() (any, lib.Return) {
		mode, ret := device.GetComputeMode()
		return map[lib.ComputeMode]string{lib.COMPUTEMODE_DEFAULT: "default", lib.COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive process", lib.COMPUTEMODE_PROHIBITED: "prohibited"}[mode], ret
	})
	tell("persistence mode", "nvmlDeviceGetPersistenceMode", func() (any, lib.Return) {
		on, ret := device.GetPersistenceMode()
		return word(on == lib.FEATURE_ENABLED), ret
	})
	tell("MIG", "nvmlDeviceGetMigMode", func() (any, lib.Return) {
		now, _, ret := device.GetMigMode()
		return word(now == lib.DEVICE_MIG_ENABLE), ret
	})
	tell("energy counter", "nvmlDeviceGetTotalEnergyConsumption", func() (any, lib.Return) {
		_, ret := device.GetTotalEnergyConsumption()
		return "yes", ret
	})
	return facts
}

func word(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
