package containers

// Sandbox isolates a container that only inspects something. It has no network except its
// own loopback, to which its host name also resolves, and no capabilities. It may write
// only to its mounts and to [ScratchDir], which is in memory. A limit of 0 means no
// limit.
type Sandbox struct {
	Memory    int64   // bytes, including the content of ScratchDir, without swap
	CPUs      float64 // number of processors
	Processes int64   // threads included
	Scratch   int64   // size of ScratchDir in bytes; 64 MiB if 0
}

// ScratchDir is the only folder outside its mounts to which a container in a [Sandbox]
// can write.
const ScratchDir = "/tmp"

// ScratchSize returns the size of ScratchDir in bytes.
func (s Sandbox) ScratchSize() int64 {
	if s.Scratch == 0 {
		return 64 << 20
	}
	return s.Scratch
}
