// Package sharing owns the way in which tasks share each GPU: at the same time as clients of
// NVIDIA's Multi-Process Service, by time slices, or not at all. The mapper's predictions
// use it.
//
// [State] answers how a GPU is shared now and why not by MPS. It records whether control
// daemons start, the first faults of MPS, and the attempts that share a GPU without being
// clients. [Attempt] is one attempt as a client of MPS: its group, its environment, its
// disconnection, and whether the driver lists it as a client.
package sharing
