package containers

// Sandbox is for a container that only inspects something. It has no network but
// its own loopback, where its own host name leads too, and no capabilities. It may write only to its mounts and to
// [ScratchDir], which is in memory. A limit of 0 is none.
type Sandbox struct {
	Memory    int64   // bytes, the content of ScratchDir included; no swap
	CPUs      float64 // number of processors
	Processes int64   // threads included
	Scratch   int64   // size of ScratchDir in bytes; 64 MiB if 0
}

// ScratchDir is the only folder outside its mounts that a container in a
// [Sandbox] can write to.
const ScratchDir = "/tmp"

// ScratchSize is the size of ScratchDir in bytes.
func (s Sandbox) ScratchSize() int64 {
	if s.Scratch == 0 {
		return 64 << 20
	}
	return s.Scratch
}
