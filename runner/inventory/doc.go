// Package inventory owns the list of GPUs, and the way in which containers get them.
//
// [GPUs] is the list of the GPUs that were found since the start: their indices,
// capacities and links, and whether the source still lists them. It also passes lasting
// faults of GPUs on to their source. [Attachment] answers by which mechanism the engine
// gives a container its GPUs, and which device nodes a GPU has there.
package inventory
