// Package nvml reads NVIDIA GPUs through the driver's management library.
//
// The library is loaded when a source is opened, so carma builds and runs on a
// machine without it. Everything goes through the interfaces of go-nvml: a test
// puts one of its simulated servers there.
//
// One goroutine makes all calls (worker.go), so a driver that hangs stops only that
// goroutine. Figures of the driver are checked: impossible ones are left out or
// bounded.
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
// If MIG is on, each GPU instance is a GPU and the card is none; of several compute
// instances, which share its memory, the first is used. GPUs are numbered in order, cards
// and instances together, because nvidia-smi has no number for instances.
//
// A fatal Xid is reported once, to the programs that listen then, so the daemon keeps it
// in its journal. It ends at another boot, when a lost GPU is back, when a driver that
// asked for a reset (NVML's recovery action) asks for nothing any more, or by carma
// undrain. A lost GPU is looked for after 30 s, then at doubling intervals up to 10 min.
// A reading that takes 5 s fails, and no second call is made until it returns.
package nvml
