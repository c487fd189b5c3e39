// Package nvfm replaces the client of NVIDIA's Fabric Manager, whose module is not
// available from Go's proxy. NVIDIA's DRA driver is linked with it, and calls it only if
// its feature FabricManagerPartitioning is on. Here each call returns that it is not
// available.
package nvfm

// Return is the outcome of a call.
type Return int

// Outcomes.
const (
	SUCCESS Return = iota
	absent
)

// Error is the outcome in words.
func (r Return) Error() string { return r.String() }

// String is the outcome in words.
func (r Return) String() string {
	if r == SUCCESS {
		return "success"
	}
	return "this build has no client of the Fabric Manager"
}

type (
	// LibraryOption and ConnectOption are settings that nobody reads.
	LibraryOption struct{}
	ConnectOption struct{}
	// FabricPartitionId is a partition's number.
	FabricPartitionId uint32
	// FabricGpu is a GPU of a partition.
	FabricGpu struct {
		PhysicalId          uint32
		Uuid, PciBusId      [64]int8
		NumNvLinksAvailable uint32
		MaxNumNvLinks       uint32
		NvlinkLineRateMBps  uint32
	}
	// FabricPartition is a partition.
	FabricPartition struct {
		PartitionId       FabricPartitionId
		IsActive, NumGpus uint32
		GpuInfo           [16]FabricGpu
	}
	// FabricPartitionList is all of them.
	FabricPartitionList struct {
		NumPartitions uint32
		PartitionInfo [1]FabricPartition
	}
	// Interface is the library.
	Interface interface {
		Init() Return
		Shutdown() Return
		Connect(...ConnectOption) (Handle, Return)
	}
	// Handle is a connection.
	Handle interface {
		Disconnect() Return
		GetSupportedFabricPartitions() (FabricPartitionList, Return)
		ActivateFabricPartition(FabricPartitionId) Return
		DeactivateFabricPartition(FabricPartitionId) Return
	}
)

// WithLibraryPath, WithUnixSocket, WithAddress and WithTimeoutMs set nothing.
func WithLibraryPath(string) LibraryOption { return LibraryOption{} }
func WithUnixSocket(string) ConnectOption  { return ConnectOption{} }
func WithAddress(string) ConnectOption     { return ConnectOption{} }
func WithTimeoutMs(uint32) ConnectOption   { return ConnectOption{} }

type none struct{}

// New is the library that is not there.
func New(...LibraryOption) Interface { return none{} }

func (none) Init() Return                              { return absent }
func (none) Shutdown() Return                          { return SUCCESS }
func (none) Connect(...ConnectOption) (Handle, Return) { return nil, absent }
