// Package nvml reads NVIDIA GPUs through the driver's management library.
//
// The library is loaded when a source is opened, so carma builds and runs on a machine
// without it. All calls go through the interfaces of go-nvml, so that tests can use its
// simulated servers.
//
// One goroutine makes all calls (worker.go), so a driver that hangs stops only that
// goroutine. The driver's figures are checked: impossible ones are left out or bounded.
//
// Readings, and assumptions where the driver has none:
//
//   - Capacity: total memory minus the driver's own (driver 510 and later), else minus
//     the memory in use on an idle card, at most 1 GiB. A card that has no memory of its
//     own (GB10) has MemTotal and MemAvailable of /proc/meminfo.
//   - Memory in use: a reading that fails, or is larger than the card, is ignored; the
//     third in a row is a fault.
//   - Processes: the compute, graphics and MPS lists, one entry for each PID. Memory that
//     no process accounts for is divided evenly among the processes without a figure.
//   - Time in which kernels of a process run: nvmlDeviceGetProcessUtilization. It bounds
//     the SM activity that the process causes. The driver leaves out processes that ran
//     nothing: one that was seen once and is left out was idle, one that never was is not
//     known. Not known on MIG instances and vGPUs. Not seen on a GPU.
//   - Power, temperature: of the card. A MIG instance has a part of its card's power and
//     energy, by its share of the instances' memory.
//   - Energy: the card's counter since the daemon's start, continued if it begins again
//     at 0; else power, integrated.
//   - Memory errors and throttling: every 10 s.
//   - Several GPUs close to each other: NVLink (nvmlDeviceGetP2PStatus), else numa_node of
//     the card in sysfs. Not seen on a machine with several cards.
//
// If MIG is on, each GPU instance counts as a GPU and the card does not. If an instance
// has several compute instances, which share its memory, the first is used. GPUs are
// numbered in order, cards and instances together, because nvidia-smi has no number for
// instances.
//
// A fatal Xid is reported once, to the programs that listen at that time, so the daemon
// stores it in its journal. It ends at another boot, when a lost GPU is back, when a
// driver no longer requests a reset that it requested before (NVML's recovery action), or
// by carma undrain. A lost GPU is searched for after 30 s, then at doubling intervals up
// to 10 min. A reading that takes 5 s fails, and no second call is made until it returns.
package nvml
